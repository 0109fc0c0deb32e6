import Metal
import MetalRuntime
import XCTest

final class LibraryTests: MetalTestCase {
    private static let constants = """
        #include <metal_stdlib>
        using namespace metal;
        constant uint width [[function_constant(0)]];
        constant bool negate [[function_constant(1)]];
        kernel void fill(device int* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          x[i] = (is_function_constant_defined(negate) && negate ? -1 : 1) * int(width) * SCALE;
        }
        """

    private func library() throws -> any MTLLibrary {
        let options = MTLCompileOptions()
        options.preprocessorMacros = ["SCALE": 10 as NSNumber, "UNUSED": "text" as NSString]
        return try device.makeLibrary(source: Self.constants, options: options)
    }

    func testFunctionsOfALibrary() throws {
        let library = try library()
        XCTAssertEqual(library.functionNames, ["fill"])
        XCTAssertNil(library.makeFunction(name: "missing"))
        let function = try XCTUnwrap(library.makeFunction(name: "fill"))
        XCTAssertEqual(function.functionType, .kernel)
        let width = try XCTUnwrap(function.functionConstantsDictionary["width"])
        XCTAssertEqual(width.type, .uint)
        XCTAssertEqual(width.index, 0)
        XCTAssertTrue(width.required)
        XCTAssertEqual(function.functionConstantsDictionary["negate"]?.required, false)
        XCTAssertThrowsError(try device.makeComputePipelineState(function: function)) {
            XCTAssertTrue($0.localizedDescription.contains("[\"width\"]"), $0.localizedDescription)
        }
    }

    func testSpecialisation() throws {
        let values = MTLFunctionConstantValues()
        var width: UInt32 = 7, negate = true
        values.setConstantValue(&width, type: .uint, index: 0)
        XCTAssertEqual(try filled(values), [70])
        values.setConstantValue(&negate, type: .bool, withName: "negate")
        XCTAssertEqual(try filled(values), [-70])
        values.reset()
        XCTAssertThrowsError(try filled(values)) { XCTAssertTrue($0 is MTLLibraryError, "\($0)") }
        XCTAssertThrowsError(try library().makeFunction(name: "missing", constantValues: values)) {
            XCTAssertEqual(($0 as? MTLLibraryError)?.code, .functionNotFound)
        }
    }

    private func filled(_ values: MTLFunctionConstantValues) throws -> [Int32] {
        let state = try device.makeComputePipelineState(
            function: library().makeFunction(name: "fill", constantValues: values))
        let x = try XCTUnwrap(device.makeBuffer(length: 4))
        run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.dispatchThreads(one, threadsPerThreadgroup: one)
        }
        return [x.contents().load(as: Int32.self)]
    }

    /// By default, math is fast: tanh is (t - 1) / (t + 1) with t = exp(2x), which is infinity divided by infinity at
    /// 45.
    func testFastMathIsTheDefault() throws {
        let source = "#include <metal_stdlib>\nkernel void k(device float *x) { x[0] = metal::tanh(x[0]); }"
        let safe = MTLCompileOptions()
        safe.mathMode = .safe
        safe.mathFloatingPointFunctions = .precise
        for (options, isNaN) in [(nil, true), (MTLCompileOptions(), true), (safe, false)] {
            let x = buffer([45]),
                function = try device.makeLibrary(source: source, options: options).makeFunction(name: "k")
            let state = try device.makeComputePipelineState(function: XCTUnwrap(function))
            run { encoder in
                encoder.setComputePipelineState(state)
                encoder.setBuffer(x, offset: 0, index: 0)
                encoder.dispatchThreads(one, threadsPerThreadgroup: one)
            }
            XCTAssertEqual(floats(x)[0].isNaN, isNaN)
            if !isNaN { XCTAssertEqual(floats(x), [1]) }
        }
    }

    func testCompileErrors() {
        XCTAssertThrowsError(try device.makeLibrary(source: "kernel void broken( {\n", options: nil)) { error in
            XCTAssertEqual((error as? MTLLibraryError)?.code, .compileFailure)
            XCTAssertTrue(error.localizedDescription.contains("program_source:1:"), error.localizedDescription)
            XCTAssertTrue("\(error)".contains("Domain=MTLLibraryErrorDomain Code=3 \"program_source:1:"), "\(error)")
            do { throw error } catch MTLLibraryError.compileFailure {} catch { XCTFail("not caught by its name") }
        }
    }

    func testMakingWithoutWaiting() async throws {
        let library = try await device.makeLibrary(source: Self.source, options: nil)
        let function = try XCTUnwrap(library.makeFunction(name: "twice"))
        let (state, reflection) = try await device.makeComputePipelineState(
            function: function, options: [.bindingInfo, .bufferTypeInfo])
        XCTAssertEqual(state.threadExecutionWidth, 32)
        XCTAssertEqual(reflection?.bindings.map(\.name), ["x", "y"])
        do {
            _ = try await device.makeLibrary(source: "kernel", options: nil)
            XCTFail("compiled")
        } catch MTLLibraryError.compileFailure {}
    }

    func testReflection() throws {
        let function = try XCTUnwrap(device.makeLibrary(source: Self.source, options: nil).makeFunction(name: "scale"))
        var reflection: MTLAutoreleasedComputePipelineReflection?
        _ = try device.makeComputePipelineState(function: function, options: .bindingInfo, reflection: &reflection)
        let bindings = try XCTUnwrap(reflection?.bindings as? [any MTLBufferBinding])
        XCTAssertEqual(bindings.map(\.index), [0, 1])
        XCTAssertEqual(bindings.map(\.access), [.readWrite, .readOnly])
        XCTAssertEqual(bindings.map(\.bufferDataSize), [4, 8])
        XCTAssertEqual(bindings.map(\.bufferDataType), [.float, .struct])
        XCTAssertEqual(reflection?.arguments.map(\.name), ["x", "s"])
        _ = try device.makeComputePipelineState(function: function, options: [], reflection: &reflection)
        XCTAssertNil(reflection, "reflection that was not requested")
        let descriptor = MTLComputePipelineDescriptor()
        descriptor.computeFunction = function
        let (_, byDescriptor) = try device.makeComputePipelineState(descriptor: descriptor, options: [.argumentInfo])
        let (_, byFunction) = try device.makeComputePipelineState(function: function, options: [.argumentInfo])
        XCTAssertEqual(byDescriptor?.bindings.count, 2)
        XCTAssertEqual(byFunction?.bindings.count, 2)
    }

    func testBinaryArchives() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("kernels.archive"), descriptor = MTLComputePipelineDescriptor()
        descriptor.computeFunction = try device.makeLibrary(source: Self.source, options: nil).makeFunction(
            name: "twice")
        let archive = try device.makeBinaryArchive(descriptor: MTLBinaryArchiveDescriptor())
        XCTAssertThrowsError(try archive.serialize(to: file), "an empty archive")
        try archive.addComputePipelineFunctions(descriptor: descriptor)
        try archive.serialize(to: file)

        let stored = MTLBinaryArchiveDescriptor()
        stored.url = file
        descriptor.binaryArchives = [try device.makeBinaryArchive(descriptor: stored)]
        let make = {
            try self.device.makeComputePipelineState(
                descriptor: descriptor, options: .failOnBinaryArchiveMiss, reflection: nil)
        }
        let compiled = mrt_compile_stats_get().compiled
        XCTAssertNoThrow(try make())
        XCTAssertEqual(mrt_compile_stats_get().compiled, compiled, "a hit compiles nothing")
        descriptor.computeFunction = try device.makeLibrary(source: Self.source, options: nil).makeFunction(
            name: "increment")
        XCTAssertThrowsError(try make(), "a miss") {
            XCTAssertEqual(($0 as? MTLBinaryArchiveError)?.code, .compilationFailure)
        }

        var bytes = try Data(contentsOf: file)
        bytes[bytes.count - 3] ^= 1
        try bytes.write(to: file)
        XCTAssertThrowsError(try device.makeBinaryArchive(descriptor: stored), "a damaged file") {
            XCTAssertEqual(($0 as? MTLBinaryArchiveError)?.code, .invalidFile)
        }
    }

    func testDefaultLibraryOfABundle() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).bundle")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Self.source.write(to: folder.appendingPathComponent("a.metal"), atomically: true, encoding: .utf8)
        let bundle = try XCTUnwrap(Bundle(path: folder.path))
        let library = try device.makeDefaultLibrary(bundle: bundle)
        XCTAssertTrue(library.functionNames.contains("twice"))
    }

    /// Files with functions of the same name, a header with `#pragma once`, and a path to the file that a Mac would
    /// have compiled.
    func testFilesOfABundleAreCompiledByThemselves() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).bundle")
        let inner = folder.appendingPathComponent("inner")
        try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func write(_ text: String, _ name: String) throws {
            try text.write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
        }
        try write("#pragma once\n#include \"inner/b.h\"\nstruct S { float value; };", "a.h")
        try write("/* #include \"none.h\" */\n#import \"../a.h\"\nconstant float base = 40;", "inner/b.h")
        for (name, value) in [("one", 1), ("two", 2)] {
            try write(
                """
                #include "a.h"
                #include "a.h"
                #if 0
                #include "none.h"
                #endif
                static float value() { return S{\(value)}.value + base; }
                kernel void \(name)(device float* x [[buffer(0)]]) { x[0] = value(); }
                """, "\(name).metal")
        }
        let library = try device.makeDefaultLibrary(bundle: try XCTUnwrap(Bundle(path: folder.path)))
        XCTAssertEqual(library.functionNames.sorted(), ["one", "two"])
        for (name, expected) in [("one", Float(41)), ("two", 42)] {
            let state = try device.makeComputePipelineState(function: XCTUnwrap(library.makeFunction(name: name)))
            let x = device.makeBuffer(length: 4)!
            run { encoder in
                encoder.setComputePipelineState(state)
                encoder.setBuffer(x, offset: 0, index: 0)
                encoder.dispatchThreads(one, threadsPerThreadgroup: one)
            }
            XCTAssertEqual(floats(x), [expected])
        }
        let compiled = folder.appendingPathComponent("two.metallib")
        XCTAssertEqual(try device.makeLibrary(URL: compiled).functionNames, ["two"])
        XCTAssertEqual(
            try device.makeLibrary(filepath: folder.appendingPathComponent("default.metallib").path).functionNames
                .sorted(),
            ["one", "two"])
        try write("#line 1\nkernel void three(device float* x [[buffer(0)]]) { x[0] = undeclared; }", "three.metal")
        XCTAssertThrowsError(try device.makeDefaultLibrary(bundle: try XCTUnwrap(Bundle(path: folder.path)))) {
            XCTAssertTrue($0.localizedDescription.contains("three.metal:1:"), $0.localizedDescription)
        }
    }

    /// A bundle with these files.
    private func bundle(_ files: [String: String]) throws -> (Bundle, URL) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).bundle")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files {
            try text.write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
        }
        return (try XCTUnwrap(Bundle(path: folder.path)), folder)
    }

    private func value(of library: any MTLLibrary) throws -> [Float] {
        let state = try device.makeComputePipelineState(function: XCTUnwrap(library.makeFunction(name: "k")))
        let x = device.makeBuffer(length: 4)!
        run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.dispatchThreads(one, threadsPerThreadgroup: one)
        }
        return floats(x)
    }

    private static let caller = """
        #include "shared.h"
        kernel void k(device float* x [[buffer(0)]]) { x[0] = shared(3); }
        """
    private static let callee = "#include \"shared.h\"\nfloat shared(float x) { return x * FACTOR; }"

    func testFilesOfABundleAreLinked() throws {
        var files = [
            "a.metal": Self.caller, "b.metal": Self.callee, "shared.h": "#define FACTOR 7\nfloat shared(float);",
        ]
        XCTAssertEqual(try value(of: device.makeDefaultLibrary(bundle: bundle(files).0)), [21])
        files["c.metal"] = Self.callee
        XCTAssertThrowsError(try device.makeDefaultLibrary(bundle: bundle(files).0)) {
            XCTAssertTrue(
                $0.localizedDescription.contains("c.metal:2:7: error: 'shared(float)' is also defined at b.metal:2"))
        }
    }

    /// A library that `metal` wrote in a build plugin (src/cli/metal_tools.ts).
    func testListsOfSources() throws {
        let (sources, folder) = try bundle([
            "a.metal": Self.caller, "b.metal": Self.callee, "shared.h": "float shared(float);",
        ])
        XCTAssertNotNil(sources)
        let list = """
            Orchard: sources of a Metal library
            \(folder.path)/a.metal\t-I\(folder.path)\t-std=metal3.0
            \(folder.path)/b.metal\t-DFACTOR=5
            """
        let (built, place) = try bundle(["default.metallib": list])
        XCTAssertEqual(try value(of: device.makeDefaultLibrary(bundle: built)), [15])
        XCTAssertEqual(try value(of: device.makeLibrary(URL: place.appendingPathComponent("default.metallib"))), [15])
        let data = Data(list.utf8).withUnsafeBytes { DispatchData(bytes: $0) }
        XCTAssertEqual(try value(of: device.makeLibrary(data: data)), [15])
    }
}
