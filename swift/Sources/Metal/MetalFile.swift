/// A .metal file as it is compiled here: together with the text of the adjacent files that it includes, as Apple's
/// compiler finds them when a program is built. `makeLibrary(source:)` has no include path, as on a Mac.
struct MetalFile {
    private var text = ""
    private var stack: [URL] = []
    private var known: [String: Int] = [:]
    private var folders: [URL] = []

    /// Returns the whole text of a file. `#line` makes messages name the original file and line.
    ///
    /// - Parameter folders: also searched for included files.
    static func text(of file: URL, including folders: [URL] = []) throws -> String {
        var reader = MetalFile()
        reader.folders = folders
        try reader.append(file)
        return reader.text
    }

    private mutating func append(_ file: URL) throws {
        let source = try String(contentsOf: file, encoding: .utf8)
        stack.append(file)
        defer { stack.removeLast() }
        appendLine(1)
        var isInComment = false
        for (index, line) in source.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let isCode = !isInComment
            isInComment = Self.endsInComment(line, from: isInComment)
            guard isCode, let directive = Directive(line), try insert(directive) else {
                text += line + "\n"
                continue
            }
            appendLine(index + 2)
        }
    }

    /// Returns false if the line must stay: it includes a header of Metal, or a file that does not exist, which the
    /// compiler reports.
    private mutating func insert(_ directive: Directive) throws -> Bool {
        switch directive {
        case .once: return true
        case .include(let name, let once):
            guard let file = find(name) else { return false }
            guard !stack.contains(file) else { return true }
            try insert(file, once: try once || Self.isOnce(file))
            return true
        }
    }

    /// A file with `#pragma once` is inserted at each include, inside an include guard: only the preprocessor knows
    /// which include comes first.
    private mutating func insert(_ file: URL, once: Bool) throws {
        guard once else { return try append(file) }
        let number = known[file.path] ?? known.count
        known[file.path] = number
        text += "#ifndef ORCHARD_INCLUDED_\(number)\n#define ORCHARD_INCLUDED_\(number)\n"
        try append(file)
        text += "#endif\n"
    }

    /// Looks for the file next to the one that includes it, then next to the first file.
    private func find(_ name: String) -> URL? {
        guard !name.hasPrefix("/") else { return nil }
        let places = [stack[stack.count - 1], stack[0]].map { $0.deletingLastPathComponent() } + folders
        return places.map { $0.appendingPathComponent(name).standardizedFileURL }.first {
            FileManager.default.fileExists(atPath: $0.path)
        }
    }

    private mutating func appendLine(_ number: Int) {
        text += "#line \(number) \"\(stack[stack.count - 1].lastPathComponent)\"\n"
    }

    private static func isOnce(_ file: URL) throws -> Bool {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").contains { Directive($0) == .once }
    }

    /// Returns whether the line ends within a `/* … */` comment.
    private static func endsInComment(_ line: Substring, from isInside: Bool) -> Bool {
        var isInside = isInside, previous: Character = " "
        for character in line {
            switch (previous, character, isInside) {
            case ("/", "/", false): return false
            case ("/", "*", false): (isInside, previous) = (true, " ")
            case ("*", "/", true): (isInside, previous) = (false, " ")
            default: previous = character
            }
        }
        return isInside
    }

    private enum Directive: Equatable {
        case include(String, once: Bool)
        case once

        init?(_ line: Substring) {
            let words = line.drop { $0 == " " || $0 == "\t" }
            guard words.first == "#" else { return nil }
            let body = words.dropFirst().drop { $0 == " " || $0 == "\t" }
            let keyword = body.prefix { $0.isLetter }
            let remainder = body.dropFirst(keyword.count).drop { $0 == " " || $0 == "\t" }
            switch keyword {
            case "include", "import":
                guard let open = remainder.first, open == "\"" || open == "<",
                    let end = remainder.dropFirst().firstIndex(of: open == "<" ? ">" : "\"")
                else { return nil }
                let name = remainder[remainder.index(after: remainder.startIndex)..<end]
                self = .include(String(name), once: keyword == "import")
            case "pragma" where remainder.hasPrefix("once"): self = .once
            default: return nil
            }
        }
    }
}
