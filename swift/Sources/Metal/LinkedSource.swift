/// The text that is compiled for a library that calls functions of dynamic libraries. This device keeps every library
/// as source, so it links by compiling: the declarations of the dynamic libraries follow the text that calls them.
///
/// A declaration of a dynamic library is omitted if the text before it contains the same declaration, such as a
/// structure of a shared header. A function is omitted if a function with the same head precedes it. So the first
/// library that defines a function provides it, as in symbol lookup.
struct LinkedSource {
    private(set) var text: String
    private var known: Set<String> = []

    init(_ source: String) {
        text = source
        for piece in Self.pieces(source) { known.insert(piece.key) }
    }

    /// Appends the declarations of a dynamic library, without its kernels. Messages about them name `file`.
    mutating func append(_ source: String, file: String) {
        var added = ""
        for piece in Self.pieces(source) {
            guard piece.isOpen || !piece.isKernel && known.insert(piece.key).inserted else { continue }
            added += "\n#line \(piece.line) \"\(file)\"\n\(piece.text)\n"
        }
        text += added
    }

    /// A declaration, a directive of the preprocessor, or the start or end of a namespace.
    private struct Piece {
        var text: String
        var line: Int
        /// Equal for equal pieces: the head of a function, or the whole text of any other piece, with its namespaces.
        var key: String
        /// Whether the piece is always kept: directives, and the braces of namespaces.
        var isOpen = false
        var isKernel = false
    }

    private static func pieces(_ source: String) -> [Piece] {
        var scanner = Scanner(source)
        while scanner.step() {}
        return scanner.pieces
    }

    /// Splits a text at the ends of its declarations.
    private struct Scanner {
        private let bytes: [UInt8]
        private var at = 0
        private var line = 1
        private var start = 0
        private var startLine = 1
        private var depth = 0
        /// The text of the declaration without comments, with single spaces.
        private var plain = ""
        /// The part of `plain` before the first brace, if there is one.
        private var head: String?
        private var spaces: [String] = []
        var pieces: [Piece] = []

        init(_ source: String) { bytes = Array(source.utf8) }

        mutating func step() -> Bool {
            guard at < bytes.count else {
                finish()
                return false
            }
            let byte = bytes[at], next = at + 1 < bytes.count ? bytes[at + 1] : 0
            switch byte {
            case UInt8(ascii: "/") where next == UInt8(ascii: "/"): skip { $0 != UInt8(ascii: "\n") }
            case UInt8(ascii: "/") where next == UInt8(ascii: "*"): skipComment()
            case UInt8(ascii: "\""), UInt8(ascii: "'"): copyLiteral(byte)
            case UInt8(ascii: "#") where depth == 0 && isEmpty: directive()
            default: code(byte)
            }
            return true
        }

        private var isEmpty: Bool { plain.allSatisfy { $0 == " " } }

        private mutating func advance() {
            if bytes[at] == UInt8(ascii: "\n") { line += 1 }
            at += 1
        }

        private mutating func skip(while holds: (UInt8) -> Bool) {
            while at < bytes.count, holds(bytes[at]) { advance() }
        }

        private mutating func skipComment() {
            advance()
            advance()
            while at < bytes.count {
                let ends = bytes[at] == UInt8(ascii: "/") && bytes[at - 1] == UInt8(ascii: "*")
                advance()
                if ends { return space() }
            }
        }

        private mutating func copyLiteral(_ quote: UInt8) {
            let first = at
            repeat {
                if bytes[at] == UInt8(ascii: "\\") { advance() }
                if at < bytes.count { advance() }
            } while at < bytes.count && bytes[at] != quote
            if at < bytes.count { advance() }
            plain += String(decoding: bytes[first..<at], as: UTF8.self)
        }

        private mutating func space() {
            if let last = plain.last, last != " " { plain += " " }
        }

        /// A directive with its continuation lines.
        private mutating func directive() {
            (start, startLine) = (at, line)
            while at < bytes.count, bytes[at] != UInt8(ascii: "\n") || bytes[at - 1] == UInt8(ascii: "\\") { advance() }
            add(Piece(text: string(start, at), line: startLine, key: "", isOpen: true))
        }

        private mutating func code(_ byte: UInt8) {
            let isSpace = byte <= UInt8(ascii: " ")
            if isEmpty && !isSpace { (start, startLine, plain) = (at, line, "") }
            advance()
            guard !isSpace else { return space() }
            if byte == UInt8(ascii: "}"), depth == 0, isEmpty || plain.isEmpty {
                if !spaces.isEmpty { spaces.removeLast() }
                return add(Piece(text: "}", line: line, key: "", isOpen: true))
            }
            if byte == UInt8(ascii: "{"), depth == 0 {
                if plain.hasPrefix("namespace") || plain.hasPrefix("extern \"C\"") {
                    spaces.append(plain)
                    return add(Piece(text: string(start, at), line: startLine, key: "", isOpen: true))
                }
                head = head ?? plain
            }
            plain.unicodeScalars.append(Unicode.Scalar(byte))
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
            if depth == 0, byte == UInt8(ascii: ";") || byte == UInt8(ascii: "}") && isFunction { finish() }
        }

        /// Whether the first brace begins a function's body, which no semicolon follows.
        private var isFunction: Bool {
            guard let last = head?.last(where: { $0 != " " }), let head else { return false }
            let words = head.split { !$0.isLetter }
            return last == ")" && (!head.contains("=") || words.contains("operator")) || words.last == "const"
        }

        private mutating func finish() {
            guard !isEmpty else { return }
            let name = isFunction ? head! : plain
            let words = name.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
            add(
                Piece(
                    text: string(start, at), line: startLine, key: spaces.joined() + "|" + withoutSpaces(name),
                    isKernel: isFunction && words.contains("kernel")))
        }

        private func withoutSpaces(_ text: String) -> String {
            text.replacingOccurrences(of: "[[visible]]", with: "").filter { $0 != " " }
        }

        private mutating func add(_ piece: Piece) {
            pieces.append(piece)
            (plain, head, depth, start, startLine) = ("", nil, 0, at, line)
        }

        private func string(_ from: Int, _ to: Int) -> String { String(decoding: bytes[from..<to], as: UTF8.self) }
    }
}
