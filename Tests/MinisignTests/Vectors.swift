// Keys and signatures that minisign 0.11 made once, so that tests run without it.

/// Files of two keys, and signatures of one message.
enum Vectors {
    /// The content of the signed file.
    static let message = Array("Waypost: 7 nodes\n".utf8)

    /// The id of `publicKey`, as minisign prints it.
    static let id = "EAC60FA2F8AE6883"

    /// Made by `minisign -G -W`.
    static let publicKey = """
        untrusted comment: minisign public key EAC60FA2F8AE6883
        RWSDaK74og/G6hX42pyBq2KYcw3qLaOYoWXFekDK/oZ8ww7RlNZjVsuw

        """

    /// The secret half of `publicKey`, without a password.
    static let secretKey = """
        untrusted comment: minisign encrypted secret key
        RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAg2iu+KIPxurCF1rTWjZ\
        lSp9AQNiSH2w6I27cVwStee0s4mF5NILgpBX42pyBq2KYcw3qLaOYoWXFekDK/oZ8ww7RlNZjVsuwAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAA=

        """

    /// Made by `minisign -S -t "settings 12 für Łódź"` with `secretKey`.
    static let prehashed = """
        untrusted comment: signature from minisign secret key
        RUSDaK74og/G6mzqManNahL72yvOF/kUnvNNyyh5/j2W9lMO0IenoANoQvOo+ejEZpa1OonyfB1EGPUGsxvO8i3GGUQ\
        g5jjfuws=
        trusted comment: settings 12 für Łódź
        pT6aVCKSECw9dBpvnIpkadkNomwB8kOVHbNT7+qq2+9Ea+7jlYDLdDdDlyvm29ClVwf+hbftkAB16X4oxevhAg==

        """

    /// Made by `minisign -S -l -t "settings 12"` with `secretKey`.
    static let legacy = """
        untrusted comment: signature from minisign secret key
        RWSDaK74og/G6mf5FQkTYyiv07VyXTl9Bgo0QxPIuFr9gx42ByK0vlQ8t1+l7OFEDGiMDMR2ZKykhcSCtMuoHPwym4K\
        zUP+XBwg=
        trusted comment: settings 12
        Xb1alE7dpl9eyFIsjoGUvzfQZITXUr7wMkkPm/aKjEvYwOUQ2dgCJlKHG8uVFJDl4hajNtOsT7BmoaXWFS+EBw==

        """

    /// Made by `minisign -G` under `ulimit -v 60000`, so that scrypt takes 32 MiB, not 1 GiB.
    static let otherPublicKey = """
        untrusted comment: minisign public key FB0CD1C633D54FC1
        RWTBT9UzxtEM++OVGRdLshbvMW3UsKzPdPee/MTuWPlFSsh2caE1vekL

        """

    /// The secret half of `otherPublicKey`, encrypted with `password`.
    static let encryptedKey = """
        untrusted comment: minisign encrypted secret key
        RWRTY0Iy84i167NKw4n11Uri4T6cpgnFVBXZAi8wzHVMo4i6vH0AABAAAAAAAAAAAAIAAAAATwTzaguiV6QdrSwKNjq\
        MubT83GZq+s5uCQuP2pDg3hdHJ6Zlhh5o8Ijwxj9OoiJ3X3WsNG7ahS8T7CDekBLb2daLwxqEtU81TgYJ50rF59VUcg\
        qBxKOBtdlYp2OnS6ee6KFH001xpZs=

        """

    /// Made by `minisign -S` with `encryptedKey`; the default comment has tabs.
    static let otherSignature = """
        untrusted comment: signature from minisign secret key
        RUTBT9UzxtEM+43cseKXQQC4qYDw5yrvaxhQV7GXy1sjtjX3U2L855ni84Tx67mvWXGR7r0QEfaufox74cDvsIEXThU\
        pjwv9pAk=
        trusted comment: timestamp:1795939268	file:m	hashed
        V5mVczU9NVJ5CsMO1r3CRHpjMe11qA+VWWjebOHUsyAOikWyiSmvfwG5ed1mH/skISV3PQx5HmRBhpcP2rc3BQ==

        """

    static let password = Array("four words, one space".utf8)
}
