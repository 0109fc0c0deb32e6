/// A 128-bit digest of texts: FNV-1a twice, with different initial values. It identifies content; it is not
/// cryptographic.
struct Fingerprint: Hashable, CustomStringConvertible {
    private var first: UInt64 = 0xcbf2_9ce4_8422_2325
    private var second: UInt64 = 0x6c62_272e_07bb_0142

    init(_ texts: [String]) {
        for text in texts {
            add(text.utf8)
            add(CollectionOfOne(0))  // so that ["ab", "c"] differs from ["a", "bc"]
        }
    }

    init(bytes: some Sequence<UInt8>) { add(bytes) }

    var description: String { hexadecimal(first) + hexadecimal(second) }

    private mutating func add(_ bytes: some Sequence<UInt8>) {
        let prime: UInt64 = 0x100_0000_01b3
        for byte in bytes {
            first = (first ^ UInt64(byte)) &* prime
            second = (second ^ UInt64(byte ^ 0x5a)) &* prime
        }
    }

    private func hexadecimal(_ word: UInt64) -> String {
        let digits = String(word, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
