import Metal
import MetalRuntime
import XCTest

/// Kernels that call functions of dynamic libraries, compared with the same arithmetic in Swift.
final class DynamicLibraryTests: MetalTestCase {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("dynamic-\(UUID())")

    override func setUpWithError() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    override func tearDown() {
        try? FileManager.default.removeItem(at: folder)
        super.tearDown()
    }

    private func dynamic(
        _ source: String, _ installName: String, _ libraries: [any MTLDynamicLibrary] = [],
        macros: [String: NSObject] = [:]
    ) throws -> any MTLDynamicLibrary {
        let options = MTLCompileOptions()
        options.libraryType = .dynamic
        options.installName = installName
        options.libraries = libraries
        options.preprocessorMacros = macros
        let library = try device.makeLibrary(source: source, options: options)
        XCTAssertEqual([library.type.rawValue, library.functionNames.count], [MTLLibraryType.dynamic.rawValue, 0])
        XCTAssertEqual(library.installName, installName)
        return try device.makeDynamicLibrary(library: library)
    }

    /// Runs the kernel `apply` on four values.
    private func apply(
        _ source: String, _ libraries: [any MTLDynamicLibrary], preloaded: [any MTLDynamicLibrary] = []
    ) throws -> [Float] {
        let options = MTLCompileOptions()
        options.libraries = libraries
        let library = try device.makeLibrary(source: source, options: options)
        let descriptor = MTLComputePipelineDescriptor()
        descriptor.computeFunction = try XCTUnwrap(library.makeFunction(name: "apply"))
        descriptor.preloadedLibraries = preloaded
        let pipeline = try device.makeComputePipelineState(descriptor: descriptor, options: []).0
        let values = buffer([1, 2, 3, 4])
        run { encoder in
            encoder.setComputePipelineState(pipeline)
            encoder.setBuffer(values, offset: 0, index: 0)
            encoder.dispatchThreads(MTLSizeMake(4, 1, 1), threadsPerThreadgroup: MTLSizeMake(4, 1, 1))
        }
        return floats(values)
    }

    private static let head = """
        #include <metal_stdlib>
        using namespace metal;
        // shared by caller and library }
        struct Line { float slope; float offset; };
        float helper(float x, Line line);
        void store(device float* x, uint i, float value);

        """
    private static let caller =
        head + """
            kernel void apply(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
              store(x, i, helper(x[i], Line{3, 0.5}));
            }
            """

    private func library(factor: Int, _ installName: String) throws -> any MTLDynamicLibrary {
        try dynamic(
            Self.head + """
                constant float factors[2] = {0, FACTOR}; /* one for each case { */
                static float scaled(float x) { return factors[1] * x; }
                float helper(float x, Line line) { return scaled(fma(x, line.slope, line.offset)); }
                void store(device float* x, uint i, float value) { if (i < 4) { x[i] = value; } }
                kernel void unused(device float* x) { x[0] = 0; }
                """, installName, macros: ["FACTOR": NSNumber(value: factor)])
    }

    func testAKernelCallsALibraryThatSharesAHeader() throws {
        for factor in (0..<4).map({ _ in Int.random(in: -9...9) }) {
            let library = try library(factor: factor, "@executable_path/line.metallib")
            XCTAssertEqual(library.installName, "@executable_path/line.metallib")
            XCTAssertEqual(
                try apply(Self.caller, [library]), [1, 2, 3, 4].map { Float(factor) * ($0 * 3 + 0.5) })
        }
    }

    func testPreloadedLibrariesComeFirst() throws {
        let two = try library(factor: 2, "two"), five = try library(factor: 5, "five")
        XCTAssertEqual(try apply(Self.caller, [two], preloaded: [five]), [1, 2, 3, 4].map { 5 * ($0 * 3 + 0.5) })
        XCTAssertEqual(
            try apply(Self.caller, [five], preloaded: [two, five]), [1, 2, 3, 4].map { 2 * ($0 * 3 + 0.5) })
    }

    func testALibraryCallsAnother() throws {
        let inner = try dynamic("namespace deep { float inner(float x) { return x * x; } }", "inner")
        let outer = try dynamic(
            "namespace deep { float inner(float x); }\nfloat outer(float x) { return deep::inner(x) + 1; }", "outer",
            [inner])
        let caller = """
            [[visible]] float outer(float x);
            kernel void apply(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = outer(x[i]); }
            """
        XCTAssertEqual(try apply(caller, [outer]), [2, 5, 10, 17])
    }

    func testAFileGivesTheSameLibrary() throws {
        let innerFile = folder.appendingPathComponent("inner.metallib")
        let inner = try dynamic("float inner(float x) { return x - 1; }", "@loader_path/inner.metallib")
        let outer = try dynamic(
            "float inner(float x);\nfloat outer(float x) { return SIGN inner(x); }", "outer", [inner],
            macros: ["SIGN": "-" as NSString])
        let outerFile = folder.appendingPathComponent("outer.metallib")
        try outer.serialize(to: outerFile)
        assertError(.unresolvedInstallName, try device.makeDynamicLibrary(url: outerFile))
        try inner.serialize(to: innerFile)
        let read = try device.makeDynamicLibrary(url: outerFile)
        XCTAssertEqual(read.installName, "outer")
        let caller = """
            float outer(float x);
            kernel void apply(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = outer(x[i]); }
            """
        XCTAssertEqual(try apply(caller, [read]), [0, -1, -2, -3])

        var bytes = try Data(contentsOf: innerFile)
        bytes[Int.random(in: 0..<bytes.count)] ^= 1
        try bytes.write(to: innerFile)
        assertError(.invalidFile, try device.makeDynamicLibrary(url: innerFile))
        assertError(.dependencyLoadFailure, try device.makeDynamicLibrary(url: outerFile))
    }

    func testErrors() throws {
        let options = MTLCompileOptions()
        options.libraryType = .dynamic
        XCTAssertThrowsError(try device.makeLibrary(source: "float f() { return 1; }", options: options)) {
            XCTAssertEqual(($0 as? MTLLibraryError)?.code, .compileFailure)
            XCTAssertTrue($0.localizedDescription.contains("installName"))
        }
        let executable = try device.makeLibrary(source: "float f() { return 1; }", options: nil)
        assertError(.unsupported, try device.makeDynamicLibrary(library: executable))
        assertError(.invalidFile, try device.makeDynamicLibrary(url: folder.appendingPathComponent("missing")))
        let library = try dynamic("float f() { return 1; }", "f")
        assertError(.invalidFile, try library.serialize(to: folder.appendingPathComponent("missing/f")))
        XCTAssertThrowsError(try apply(Self.caller, [library])) {
            XCTAssertEqual(($0 as? MTLLibraryError)?.code, .compileFailure)
            XCTAssertTrue($0.localizedDescription.contains("undefined symbols"), "\($0)")
        }
        mrt_fault_inject("dynamic-library", 0, 1, 0)
        assertError(.compilationFailure, try device.makeDynamicLibrary(url: folder))
    }

    private func assertError(
        _ code: MTLDynamicLibraryError.Code, _ body: @autoclosure () throws -> Any, line: UInt = #line
    ) {
        XCTAssertThrowsError(try body(), line: line) {
            XCTAssertEqual(($0 as? MTLDynamicLibraryError)?.code, code, "\($0)", line: line)
        }
    }
}
