// Makes all threads share one malloc heap.
import CLinux

package enum Heap {
    /// Makes all threads allocate from one heap; call it before the first thread starts.
    ///
    /// glibc gives each thread one of up to eight heaps per core, and a heap keeps the most that
    /// its threads ever needed. A restarted thread may get another heap, so after weeks every heap
    /// would hold the size of a backlog.
    package static func share() { waypost_share_heap() }
}
