import Metal
import XCTest

/// Every name of Apple's Metal, as listed by a public binding, exists here, or a pattern gives the reason why not.
final class ApiNamesTests: XCTestCase {
    /// A row of metal-names.tsv: the name of a type, a selector or a case.
    private struct Name: CustomStringConvertible {
        let type, kind, name: String
        var description: String { "\(type) \(kind) \(name)" }
    }

    private func names() throws -> [Name] {
        let names = try Facts.rows("metal-names.tsv").map { Name(type: $0[0], kind: $0[1], name: $0[2]) }
        XCTAssertGreaterThan(names.count, 4000)
        return names
    }

    private struct Reason {
        let type, name: NSRegularExpression
        let text: String

        func covers(_ missing: Name) -> Bool { matches(type, missing.type) && matches(name, missing.name) }

        private func matches(_ pattern: NSRegularExpression, _ text: String) -> Bool {
            pattern.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
        }
    }

    private func reasons() throws -> [Reason] {
        try Facts.rows("metal-left-out.tsv").map {
            Reason(
                type: try NSRegularExpression(pattern: $0[0]), name: try NSRegularExpression(pattern: $0[1]),
                text: $0[2])
        }
    }

    func testEveryNameIsHereOrHasAReason() throws {
        let module = Members(try PublicSymbols.metal.get())
        let leftOut = Set(try Facts.rows("metal-types.tsv").filter { !$0[1].isEmpty }.map { $0[0] })
        var missing: [Name] = []
        for name in try names() {
            switch name.kind {
            case "protocol", "type":
                if !module.types.contains(name.type) && !leftOut.contains(name.type) {
                    missing.append(Name(type: name.type, kind: name.kind, name: "."))
                }
            case "case": if module.lacksCase(name.name, of: name.type) { missing.append(name) }
            default: if module.lacksSelector(name.name, of: name.type) { missing.append(name) }
            }
        }
        let reasons = try self.reasons()
        XCTAssertEqual(missing.filter { name in !reasons.contains { $0.covers(name) } }.map { "\($0)" }, [])
        let needless = reasons.filter { reason in !missing.contains { reason.covers($0) } }
        XCTAssertEqual(needless.map { "\($0.type.pattern) \($0.name.pattern)" }, [], "reasons for what is here")
    }

    /// Every member of the types that only reject calls has one of Apple's names.
    func testEveryMemberOfRefusedTypesIsApples() throws {
        let module = Members(try PublicSymbols.metal.get())
        let selectors = Dictionary(grouping: try names().filter { $0.kind != "case" }, by: \.type)
        var checked = 0, unknown: [String] = []
        for type in module.types.sorted() where ApiConformanceTests.isRefused(type) {
            guard let known = selectors[type], known.count > 1 else { continue }
            for member in module.names(of: type) where !known.contains(where: { module.isNamed(member, by: $0.name) }) {
                unknown.append("\(type).\(member)")
            }
            checked += 1
        }
        XCTAssertGreaterThan(checked, 30)
        XCTAssertEqual(unknown, [])
    }

    /// The rule must not find names that do not exist here; otherwise the test proves nothing.
    func testTheRuleTellsNamesApart() throws {
        let module = Members(try PublicSymbols.metal.get())
        XCTAssertFalse(module.lacksSelector("newBufferWithLength:options:", of: "MTLDevice"))
        XCTAssertFalse(module.lacksSelector("setBytes:length:atIndex:", of: "MTLComputeCommandEncoder"))
        XCTAssertFalse(module.lacksSelector("setLabel:", of: "MTLCommandQueue"))
        XCTAssertFalse(module.lacksSelector("isHeadless", of: "MTLDevice"))
        XCTAssertTrue(module.lacksSelector("newBufferWithLength:options:zone:", of: "MTLDevice"))
        XCTAssertTrue(module.lacksSelector("newBufferWithColour:options:", of: "MTLDevice"))
        XCTAssertTrue(module.lacksSelector("setBytes:length:", of: "MTLComputeCommandEncoder"))
        XCTAssertTrue(module.lacksSelector("dispatchThreads:", of: "MTLComputeCommandEncoder"))
        XCTAssertTrue(module.lacksCase("RGBA64Float", of: "MTLPixelFormat"))
        XCTAssertFalse(module.lacksCase("ASTC_10x10_sRGB", of: "MTLPixelFormat"))
    }

    /// The raw values of cases that exist here equal Apple's.
    func testEveryNumberIsApples() throws {
        var checked = 0
        for row in try Facts.rows("metal-names.tsv") where row[1] == "case" {
            let fact = EnumFacts(type: row[0], name: row[2].lowercased(), rawValue: UInt64(row[3]) ?? .max)
            guard let name = EnumFacts.name(of: fact), !name.isEmpty else { continue }
            if Self.sameNumbers[fact.type]?.contains(fact.name) == true { continue }
            XCTAssertEqual(name.lowercased(), fact.name, "\(fact.type) \(row[3])")
            checked += 1
        }
        XCTAssertGreaterThan(checked, 400)
    }

    /// Cases with the same raw value as another case.
    private static let sameNumbers: [String: Set<String>] = [
        "MTLResourceOptions": [
            "cpucachemodedefaultcache", "storagemodeshared", "hazardtrackingmodedefault", "optioncpucachemodedefault",
            "optioncpucachemodewritecombined",
        ],
        "MTLPipelineOption": ["bindinginfo", "none"], "MTLFeatureSet": ["osx_gpufamily1_v1", "osx_gpufamily1_v2"],
    ]
}

/// The members of a module by type, and the rules by which Swift's importer renames Objective-C members.
private struct Members {
    let types: Set<String>
    private let members: [String: [String]]

    init(_ symbols: [PublicSymbol]) {
        types = Set(symbols.filter { $0.path.count == 1 }.map { $0.path[0] })
        members = Dictionary(grouping: symbols.filter { $0.path.count == 2 }, by: { $0.path[0] })
            .mapValues { $0.map { $0.path[1] } }
    }

    /// The members of a type, except initializers and members that all types of a kind have.
    func names(of type: String) -> [String] {
        let common = ["init", "copy(with:)", "rawValue", "hash(", "=="]
        return (members[type] ?? []).filter { !common.contains(where: $0.hasPrefix) }
    }

    /// Whether a member is the imported form of a selector or a case.
    func isNamed(_ member: String, by selector: String) -> Bool {
        let difference = words(member).symmetricDifference(words(selector)).subtracting(Self.implied)
        return difference.isSubset(of: Self.renamed) && !words(member).isDisjoint(with: words(selector))
    }

    func lacksCase(_ name: String, of type: String) -> Bool {
        guard let members = members[type], name != "None" else { return false }
        return !members.contains { $0.lowercased() == name.lowercased() }
    }

    func lacksSelector(_ selector: String, of type: String) -> Bool {
        guard let members = members[type], !["init", "new", "alloc", "copyWithZone:"].contains(selector) else {
            return false
        }
        let parts = selector.replacingOccurrences(of: "error:_", with: "").split(separator: ":").map(String.init)
        let arguments = selector.contains(":") ? parts.filter { !["count", "error"].contains($0) }.count : 0
        if arguments == 1, selector.hasPrefix("set"), parts.count == 1 {
            let property = parts[0].dropFirst(3).lowercased()
            if members.contains(where: { $0.lowercased() == property || $0.lowercased() == "is\(property)" }) {
                return false
            }
        }
        let wanted = words(selector)
        if arguments == 0 && wanted.isSubset(of: words(type)) { return false }  // `descriptor()`, imported as `init()`
        return !members.contains { member in
            let own = words(member), labels = member.filter { $0 == ":" }.count
            return !own.isDisjoint(with: wanted) && own.symmetricDifference(wanted).isSubset(of: Self.implied)
                && (member.contains("(") ? labels == arguments : arguments == 0)
        }
    }

    /// The words of a name that distinguish it from others.
    private func words(_ name: String) -> Set<String> {
        let pattern = "[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
        var words: Set<String> = [], rest = name[...]
        while let range = rest.range(of: pattern, options: .regularExpression) {
            var word = rest[range].lowercased()
            if !Self.dropped.contains(word) {
                while word.hasSuffix("s") { word.removeLast() }
                words.insert(word)
            }
            rest = rest[range.upperBound...]
        }
        return words
    }

    /// Words that the importer removes or adds.
    private static let dropped: Set<String> = [
        "new", "make", "with", "at", "from", "in", "for", "of", "to", "by", "count", "and", "is", "the", "set", "init",
        "range", "array", "subscript", "object", "indexed", "error",
    ]
    /// Words that only one of the two languages uses in names related to rendering.
    private static let renamed: Set<String> = [
        "control", "destination", "index", "map", "mode", "number", "offset", "patch", "point", "stage", "winding",
    ]
    /// Argument types that only one of the two languages names.
    private static let implied: Set<String> = Set(
        """
        buffer texture resource device library function descriptor pixel format url command encoder scope fence heap \
        listener state option source queue data region pipeline type bundle file dynamic indirect path pas shared \
        archive binary log counter sample residency argument event handle info
        """.split(separator: " ").map(String.init))
}
