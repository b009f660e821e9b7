// Where the threads of a daemon take their memory from.
import CLinux

package enum Heap {
    /// All threads take it from one place; to be called before the first of them is started.
    ///
    /// glibc gives each thread one of up to eight heaps a core, and a heap keeps what its threads once needed at most.
    /// A part that is started anew may get another one, so in weeks each of them had held a backlog.
    package static func share() { waypost_share_heap() }
}
