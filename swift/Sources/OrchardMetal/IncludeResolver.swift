import COrchard
import Foundation

/// Replaces `#include "name"` by the text of a header from the caller: Metal's makeLibrary(source:) has no include
/// path.
///
/// Each header is included once per library, as if it had `#pragma once`. Which of several includes comes first may
/// depend on conditions that only the preprocessor knows. So a header's text is inserted at each include, inside an
/// include guard; after an unconditional include, later ones are removed. `#line` makes messages name the caller's
/// files and lines.
struct IncludeResolver {
    private static let largestResult = 16 << 20
    private static let deepest = 200

    private let headers: [String: String]
    private var guards: [String: Int] = [:]
    private var certain: Set<String> = []
    private var stack: [String] = []
    private var conditions = 0
    private var output = ""

    static let unnamed = "program_source"

    static func resolve(name: String?, source: String, headers: [(name: String, text: String)]) throws -> String {
        var table: [String: String] = [:]
        for header in headers {
            guard !header.name.isEmpty else { throw OrchardError.invalid("headers: one has no name.") }
            guard table.updateValue(header.text, forKey: header.name) == nil else {
                throw OrchardError.invalid("headers: '\(header.name)' is given twice.")
            }
        }
        var resolver = IncludeResolver(headers: table)
        try resolver.append(source, of: name ?? unnamed)
        return resolver.output
    }

    private init(headers: [String: String]) { self.headers = headers }

    // MARK: Files

    private mutating func append(_ text: String, of file: String) throws {
        guard stack.count < Self.deepest, output.utf8.count + text.utf8.count <= Self.largestResult else {
            throw OrchardError.limit(
                "\(file): includes are nested more than \(Self.deepest) deep, or give more than 16 MB of source.")
        }
        stack.append(file)
        if !(stack.count == 1 && file == Self.unnamed) { appendLine(1) }
        var comments = CommentScanner()
        var lineNumber = 0
        for bytes in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            lineNumber += 1
            let isCode = !comments.isInside
            comments.scan(bytes)
            try appendSourceLine(Substring(bytes), lineNumber, isCode ? Directive(bytes) : nil)
        }
        stack.removeLast()
    }

    private mutating func appendSourceLine(_ line: Substring, _ lineNumber: Int, _ directive: Directive?) throws {
        switch directive {
        case .include(let header, let column):
            try include(header, lineNumber, column, line)
            appendLine(lineNumber + 1)
        case .pragmaOnce:
            output += "\n"
        case .nextFile:
            certain = []
            conditions = 0
            output += "\(line)\n"
        case .conditionBegins, .conditionEnds, nil:
            if directive == .conditionBegins { conditions += 1 }
            if directive == .conditionEnds { conditions -= 1 }
            output += line
            output += "\n"
        }
    }

    private mutating func include(_ written: String, _ lineNumber: Int, _ column: Int, _ line: Substring) throws {
        guard let (header, text) = find(written) else {
            // Only the compiler knows whether the condition is true; if so, it reports the missing file.
            if conditions > 0 {
                output += line
                output += "\n"
                return
            }
            let known =
                headers.isEmpty ? "no headers were given" : "given are " + headers.keys.sorted().joined(separator: ", ")
            throw diagnostic("'\(written)' file not found (\(known))", lineNumber, column, line)
        }
        if stack.contains(header) {
            if Self.isGuarded(text) { return }
            throw diagnostic(
                "'\(header)' includes itself: " + (stack + [header]).joined(separator: " -> "), lineNumber, column, line
            )
        }
        guard !certain.contains(header) else { return }
        if conditions == 0 { certain.insert(header) }
        let mark = "ORCHARD_INCLUDED_\(guards[header] ?? guards.count)"
        guards[header] = guards[header] ?? guards.count
        output += "#ifndef \(mark)\n#define \(mark)\n"
        let outside = conditions
        try append(text, of: header)
        conditions = outside
        output += "#endif\n"
    }

    /// Returns whether `#pragma once` or a macro ends the recursion of a header that includes itself.
    private static func isGuarded(_ text: String) -> Bool {
        var comments = CommentScanner()
        for bytes in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let isCode = !comments.isInside
            comments.scan(bytes)
            guard isCode, let directive = Directive(bytes) else { continue }
            return directive == .pragmaOnce || directive == .conditionBegins
        }
        return false
    }

    /// Looks next to the including file first, then for the name unchanged.
    private func find(_ written: String) -> (String, String)? {
        let folder = stack.last!.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        let beside = Self.normalized(folder + written.split(separator: "/", omittingEmptySubsequences: false))
        for name in [beside, Self.normalized(written.split(separator: "/")[...]), written] {
            if let text = headers[name] { return (name, text) }
        }
        return nil
    }

    private static func normalized(_ parts: ArraySlice<Substring>) -> String {
        var kept: [Substring] = []
        for part in parts where part != "." {
            if part == "..", let last = kept.last, last != ".." { kept.removeLast() } else { kept.append(part) }
        }
        return kept.joined(separator: "/")
    }

    // MARK: Messages

    private mutating func appendLine(_ number: Int) { output += "#line \(number) \"\(stack.last!)\"\n" }

    private func diagnostic(_ text: String, _ line: Int, _ column: Int, _ source: Substring) -> OrchardError {
        let caret = String(repeating: " ", count: column - 1) + "^"
        return OrchardError(
            ORCHARD_COMPILE_FAILED, "\(stack.last!):\(line):\(column): error: \(text)\n\(source)\n\(caret)")
    }
}

/// A preprocessor directive that is relevant here.
private enum Directive: Equatable {
    case include(String, column: Int)
    case pragmaOnce
    /// Another file of the same library follows (MetalRuntime/rewrite/linking.h).
    case nextFile
    case conditionBegins
    case conditionEnds

    /// Most lines have no `#`, so testing one byte excludes them.
    init?(_ bytes: Substring.UTF8View) {
        guard bytes.first(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }) == UInt8(ascii: "#") else {
            return nil
        }
        let line = Substring(bytes)
        let body = line.drop { $0 != "#" }.dropFirst().drop { $0 == " " || $0 == "\t" }
        let keyword = body.prefix { $0.isLetter }
        let remainder = body.dropFirst(keyword.count).drop { $0 == " " || $0 == "\t" }
        switch keyword {
        case "include", "import":
            guard remainder.first == "\"", let end = remainder.dropFirst().firstIndex(of: "\"") else { return nil }
            let column = line.distance(from: line.startIndex, to: remainder.startIndex) + 1
            self = .include(String(remainder[remainder.index(after: remainder.startIndex)..<end]), column: column)
        case "pragma" where remainder.hasPrefix("once"): self = .pragmaOnce
        case "pragma" where remainder.hasPrefix("orchard l"): self = .nextFile
        case "if", "ifdef", "ifndef": self = .conditionBegins
        case "endif": self = .conditionEnds
        default: return nil
        }
    }
}

/// Tracks `/* … */` across lines: a directive inside a comment does not count.
private struct CommentScanner {
    private(set) var isInside = false

    mutating func scan(_ line: Substring.UTF8View) {
        let (slash, star) = (UInt8(ascii: "/"), UInt8(ascii: "*"))
        var previous: UInt8 = 0
        for byte in line {
            switch (previous, byte, isInside) {
            case (slash, slash, false): return
            case (slash, star, false): (isInside, previous) = (true, 0)
            case (star, slash, true): (isInside, previous) = (false, 0)
            default: previous = byte
            }
        }
    }
}
