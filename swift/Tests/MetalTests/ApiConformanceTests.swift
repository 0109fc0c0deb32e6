import Metal
import XCTest

/// Everything that compiles with this module must exist in Apple's, and everything that compute programs use must exist
/// here.
final class ApiConformanceTests: XCTestCase {
    /// Declarations in the table of Apple's declarations that this module leaves out, with the reason.
    private static let leftOut: [(declaration: String, reason: String)] = [
        ("dispatch_data_t", "Linux's Dispatch has DispatchData alone, for which the method is here")
    ]

    /// Types for rendering, ray tracing and sparse textures, whose calls are all errors. ApiNamesTests compares the
    /// names of their members.
    static func isRefused(_ type: String) -> Bool {
        let words = [
            "AccelerationStructure", "Attribute", "AxisAligned", "Blend", "BufferLayout", "ClearColor", "Color", "Cull",
            "Depth", "Drawable", "FunctionLog", "IndexType", "IndirectRender", "InstanceAcceleration",
            "IntersectionFunction", "LogContainer", "Mesh", "Multisample", "PackedFloat", "Parallel", "Primitive",
            "Rasterization", "Render", "ResourceState", "SamplePosition", "Scissor", "Sparse", "StageInput", "Stencil",
            "StepFunction", "StoreActionOptions", "Tess", "Tile", "TriangleFill", "Vertex", "Viewport", "Visib",
            "Winding",
        ]
        return type.hasPrefix("_") || words.contains { type.hasPrefix("MTL" + $0) }
    }

    /// Returns the type that a normalized fact declares, or has as its owner.
    private static func subject(of fact: String) -> String {
        let owner = fact.prefix { $0 != " " }
        let name = fact.range(of: "MTL\\w+", options: .regularExpression)
        return owner == "-" ? name.map { String(fact[$0]) } ?? "-" : String(owner)
    }

    /// Members that all Swift types of a kind have.
    private static let ofItsKind = [
        "^init\\??\\(rawValue:U?Int\\)$", "^varrawValue:U?Int\\{get\\}$", "^funccopy\\(withzone:NSZone\\?=nil\\)->Any$",
        "^funccopy\\(withzone:NSZone\\?\\)->Any$",
    ]

    /// Apple's declarations that are declared differently here, and how.
    private static let declaredOtherwise = [
        "MTLResource varallocatedSize:Int{get}": "MTLAllocation varallocatedSize:Int{get}",  // inherited
        // An optional method of Objective-C, which programs call as `method?(…)`.
        "MTLBlitCommandEncoder funcgetTextureAccessCounters(_texture:MTLTexture,region:MTLRegion,mipLevel:Int,"
            + "slice:Int,resetCounters:Bool,countersBuffer:MTLBuffer,countersBufferOffset:Int)":
            "MTLBlitCommandEncoder vargetTextureAccessCounters:_TextureAccessCounters?{get}",
        "- structAutoreleasingUnsafeMutablePointer":
            "- typealiasAutoreleasingUnsafeMutablePointer=UnsafeMutablePointer",
    ]

    private func appleDeclarations() throws -> Set<String> {
        let rows = try Facts.rows("metal-api.tsv") + Facts.rows("metal-api-extra.tsv")
        return Set(rows.map { "\($0[0]) \(normalized($0[1]))" })
    }

    private func publicSymbols() throws -> [PublicSymbol] {
        let symbols = try PublicSymbols.metal.get()
        XCTAssertGreaterThan(symbols.count, 500, "the symbol graph is not the whole module")
        return symbols
    }

    func testEveryPublicDeclarationIsApples() throws {
        let known = try appleDeclarations()
        let unknown = try publicSymbols().filter { symbol in
            let declaration = normalized(symbol.declaration)
            return symbol.kind != "swift.enum.case" && !Self.isRefused(symbol.path[0])
                && !Self.declaredOtherwise.values.contains("\(symbol.owner) \(declaration)")
                && !known.contains("\(symbol.owner) \(declaration)")
                && !Self.ofItsKind.contains { declaration.range(of: $0, options: .regularExpression) != nil }
                && !isImportedForm(symbol, of: known)
        }
        XCTAssertEqual(unknown.map { "\($0.owner): \($0.declaration)" }, [])
    }

    func testEveryComputeDeclarationOfApplesIsHere() throws {
        let exported = try PublicSymbols.darwin.get()
        let mine = Set((try publicSymbols() + exported).map { "\($0.owner) \(normalized($0.declaration))" })
        let missing = try appleDeclarations().filter { fact in
            !mine.contains(Self.declaredOtherwise[fact] ?? fact) && !fact.contains(" case")
                && !Self.isRefused(Self.subject(of: fact))
                && !Self.leftOut.contains { fact.contains($0.declaration) }
        }
        XCTAssertEqual(missing.sorted(), [])
    }

    /// Every type of Apple's exists here, or the list gives the reason why not.
    func testEveryTypeIsHereOrHasAReason() throws {
        let mine = Set(try publicSymbols().filter { $0.path.count == 1 }.map { $0.path[0] })
        let rows = try Facts.rows("metal-types.tsv")
        XCTAssertGreaterThan(rows.count, 200)
        XCTAssertEqual(rows.filter { $0[1].isEmpty && !mine.contains($0[0]) }.map { $0[0] }, [], "missing")
        XCTAssertEqual(rows.filter { !$0[1].isEmpty && mine.contains($0[0]) }.map { $0[0] }, [], "no longer left out")
        let listed = Set(rows.map { $0[0] })
        XCTAssertEqual(
            mine.filter { $0.range(of: "^MTL[A-Z]\\w+$", options: .regularExpression) != nil }
                .filter { name in !listed.contains(name) && !name.hasSuffix("Domain") && !name.hasSuffix("Key") }
                .filter { name in
                    ![
                        "Make", "CreateSystemDefaultDevice", "CopyAllDevices", "CounterDontSample", "CounterErrorValue",
                    ].contains { name.contains($0) }
                }
                .sorted(), [], "not listed")
    }

    func testEveryReasonToLeaveOutIsStillOne() throws {
        let known = try appleDeclarations()
        let mine = try publicSymbols().map { normalized($0.declaration) }
        for entry in Self.leftOut {
            XCTAssertTrue(known.contains { $0.contains(entry.declaration) }, "\(entry.declaration) is no fact")
            XCTAssertFalse(mine.contains { $0.contains(entry.declaration) }, "\(entry.declaration) is not left out")
        }
    }

    func testEveryEnumerationCaseIsApples() throws {
        let known = Set(try EnumFacts.all().map { "\($0.type).\($0.name)" })
        let cases = try publicSymbols().filter { $0.kind == "swift.enum.case" }
        XCTAssertGreaterThan(cases.count, 200)
        let computing = cases.filter { !Self.isRefused($0.path[0]) }.map { $0.path.joined(separator: ".") }
        XCTAssertEqual(computing.filter { !known.contains($0) }, [])
    }

    func testEveryRawValueIsApples() throws {
        var checked = 0
        for fact in try EnumFacts.all() {
            let value = try XCTUnwrap(EnumFacts.name(of: fact), "\(fact.type) is missing from the table of types")
            XCTAssertEqual(value, fact.name, "\(fact.type) \(fact.rawValue)")
            checked += 1
        }
        XCTAssertGreaterThan(checked, 230)
    }

    func testSecondNames() {
        XCTAssertEqual(MTLCommandBufferError.blacklisted.rawValue, 4)
        XCTAssertEqual(MTLResourceOptions.optionCPUCacheModeDefault.rawValue, 0)
        XCTAssertEqual(MTLResourceOptions.optionCPUCacheModeWriteCombined.rawValue, 1)
        XCTAssertEqual(MTLResourceOptions.storageModeShared.rawValue, 0)
        XCTAssertEqual(MTLResourceOptions.hazardTrackingModeDefault.rawValue, 0)
        XCTAssertEqual(MTLPipelineOption.bindingInfo, MTLPipelineOption.argumentInfo)
    }

    /// Swift's importer adds two forms of an Objective-C method: one without the arguments that have defaults and, if
    /// it has a completion handler, one that is `async`. Both must come from one of Apple's declarations.
    private func isImportedForm(_ symbol: PublicSymbol, of known: Set<String>) -> Bool {
        let declaration = normalized(symbol.declaration)
        guard let open = declaration.firstIndex(of: "(") else { return false }
        let name = "\(symbol.owner) \(declaration[..<open])("
        let labels = symbol.path.last!.drop { $0 != "(" }.dropFirst().dropLast().split(separator: ":")
        return known.contains { fact in
            fact.hasPrefix(name) && labels.allSatisfy { fact.contains("\($0)") }
                && (declaration.contains("async") ? fact.contains("completionHandler:") : hasDefault(fact, symbol))
        }
    }

    /// `options` and `deallocator` are the arguments with defaults in Apple's compute declarations.
    private func hasDefault(_ fact: String, _ symbol: PublicSymbol) -> Bool {
        let left = ["options:MTLResourceOptions", "deallocator:"].filter {
            fact.contains($0) && !symbol.declaration.contains($0.prefix(7))
        }
        return !left.isEmpty || symbol.declaration.contains("= nil")
    }
}
