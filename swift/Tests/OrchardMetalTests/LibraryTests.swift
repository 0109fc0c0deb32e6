import COrchard
import XCTest

@testable import OrchardMetal

final class LibraryTests: XCTestCase {
    func testFunctionsAreListedWithTheirConstants() throws {
        let client = try Client()
        let library = try client.library(Kernels.constants)
        let functions = try XCTUnwrap(json(text { orchard_library_functions(library, $0, $1, $2) }) as? [[String: Any]])
        XCTAssertEqual(functions.map { $0["name"] as? String }, ["plain", "scale"])
        let constants = try XCTUnwrap(functions[1]["constants"] as? [[String: Any]])
        XCTAssertEqual(constants.map { $0["name"] as? String }, ["factor", "negate", "shift"])
        XCTAssertEqual(constants.map { $0["type"] as? Int }, [33, 53, 3])
        XCTAssertEqual(constants.map { $0["required"] as? Bool }, [true, true, false])
    }

    func testDiagnosticsPointIntoTheCallersFiles() throws {
        let client = try Client()
        assertFails(ORCHARD_COMPILE_FAILED, "ops/broken.h:2:", "error", "undeclared_thing") {
            _ = try client.library(
                "#include <metal_stdlib>\n#include \"ops/broken.h\"\n", name: "main.metal",
                headers: [
                    (
                        "ops/broken.h",
                        "using namespace metal;\nkernel void k(device int *x [[buffer(0)]]) { x[0] = "
                            + "undeclared_thing; }\n"
                    )
                ])
        }
        assertFails(ORCHARD_COMPILE_FAILED, "main.metal:3:") {
            _ = try client.library(
                "#include <metal_stdlib>\n#include \"fine.h\"\nnonsense;\n", name: "main.metal",
                headers: [("fine.h", "// fine\n")])
        }
        assertFails(ORCHARD_COMPILE_FAILED, "main.metal:1:10: error: 'gone.h' file not found") {
            _ = try client.library("#include \"gone.h\"\n", name: "main.metal")
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "source is empty") { _ = try client.library("") }
    }

    func testHeadersAndMacrosTakePart() throws {
        let client = try Client()
        let library = try client.library(
            "#include <metal_stdlib>\n#include \"a.h\"\nkernel void k(device int *x [[buffer(0)]]) { x[0] = value() "
                + "+ EXTRA; }",
            headers: [
                ("a.h", "#pragma once\n#include \"b.h\"\ninline int value() { return base; }\n"),
                ("b.h", "constant int base = 40;\n"),
            ],
            macros: [("EXTRA", "2")])
        let result = try client.buffer(4)
        try client.dispatch(
            client.pipeline(library, "k"), grid: (1, 1, 1), threadgroup: (1, 1, 1), [binding(0, result, write)])
        XCTAssertEqual(try client.read(result, 1, of: Int32.self), [42])
    }

    /// Metal's default is fast math, in which tanh(45) is infinity divided by infinity; this library computes it only
    /// on request.
    func testMathematicsIsPreciseUnlessAskedOtherwise() throws {
        let client = try Client()
        let source =
            "#include <metal_stdlib>\nkernel void k(device float *x [[buffer(0)]]) { x[0] = metal::tanh(x[0]); }"
        for (fast, isNaN) in [(false, false), (true, true)] {
            let x = try client.buffer([Float(45)])
            try client.dispatch(
                client.pipeline(client.library(source, fastFunctions: fast), "k"), grid: (1, 1, 1),
                threadgroup: (1, 1, 1), [binding(0, x, readWrite)])
            XCTAssertEqual(try client.read(x, 1, of: Float.self)[0].isNaN, isNaN)
        }
    }

    func testEqualSourcesAreCompiledOnce() throws {
        let client = try Client()
        let first = try client.library(Kernels.add), second = try client.library(Kernels.add)
        let add = try client.pipeline(first, "add"), again = try client.pipeline(second, "add")
        XCTAssertNotEqual(first, second)
        let statistics = try client.statistics
        XCTAssertEqual(
            [
                statistics.libraries_compiled, statistics.library_hits, statistics.pipelines_compiled,
                statistics.pipeline_hits,
            ], [1, 1, 1, 1])
        try client.release(first, second, add)
        _ = try text { orchard_pipeline_info(again, $0, $1, $2) }
    }

    func testAnUnknownLanguageVersionIsRefused() throws {
        let client = try Client()
        for (major, minor) in [(1, 0), (2, 9), (3, 7), (9, 0)] as [(UInt32, UInt32)] {
            var block = BlockWriter<orchard_library_options>()
            block.header.source = block.span(Kernels.add)
            block.header.language_version = major << 16 | minor
            assertFails(ORCHARD_UNSUPPORTED, "Language version \(major).\(minor)", "the newest is") {
                var handle: UInt64 = 0
                try check(block.with { orchard_library_create(client.context, $0, $1, &handle) })
            }
        }
    }

    // MARK: Function constants

    private func constant<Value>(_ type: UInt32, _ value: Value, index: UInt32 = 0) -> orchard_constant {
        var constant = orchard_constant()
        constant.index = index
        constant.type = type
        withUnsafeMutableBytes(of: &constant.value) { target in
            withUnsafeBytes(of: value) { target.copyMemory(from: $0) }
        }
        return constant
    }

    private func scaled(_ client: Client, _ library: UInt64, _ constants: [(orchard_constant, String?)]) throws
        -> [Float]
    {
        let values = try client.buffer([Float(1), 2])
        let pipeline = try client.pipeline(library, "scale", constants: constants)
        try client.dispatch(pipeline, grid: (2, 1, 1), threadgroup: (2, 1, 1), [binding(0, values, readWrite)])
        return try client.read(values, 2, of: Float.self)
    }

    func testConstantsByNameAndByIndex() throws {
        let client = try Client()
        let library = try client.library(Kernels.constants)
        let factor = constant(33, UInt32(3)), no = constant(53, false), yes = constant(53, true, index: 1),
            shift = constant(3, Float(10), index: 2)
        XCTAssertEqual(try scaled(client, library, [(factor, "factor"), (no, "negate")]), [3.5, 6.5])
        XCTAssertEqual(try scaled(client, library, [(factor, nil), (yes, nil)]), [-3.5, -6.5])
        XCTAssertEqual(try scaled(client, library, [(factor, nil), (yes, nil), (shift, nil)]), [-13, -16])
        XCTAssertEqual(try client.statistics.pipelines_compiled, 3)
        XCTAssertEqual(try scaled(client, library, [(factor, "factor"), (no, "negate")]), [3.5, 6.5])
    }

    func testConstantsAreChecked() throws {
        let client = try Client()
        let library = try client.library(Kernels.constants)
        let factor = constant(33, UInt32(3)), negate = constant(53, false)
        assertFails(ORCHARD_CONSTANT_MISSING, "Kernel 'scale' needs function constant 'negate' (index 1)") {
            _ = try scaled(client, library, [(factor, "factor")])
        }
        assertFails(ORCHARD_CONSTANT_MISSING, "'fctor'", "'factor' (index 0)") {
            _ = try scaled(client, library, [(factor, "fctor"), (negate, "negate")])
        }
        assertFails(ORCHARD_CONSTANT_MISSING, "'factor' to be of type 33, got type 3") {
            _ = try scaled(client, library, [(constant(3, Float(3)), "factor"), (negate, "negate")])
        }
        assertFails(ORCHARD_FUNCTION_NOT_FOUND, "'scales'", "plain, scale") {
            _ = try client.pipeline(library, "scales")
        }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "got 4096") { _ = try client.pipeline(library, "plain", maxThreads: 4096) }
        _ = try client.pipeline(library, "plain", constants: [(factor, "factor")])
    }

    func testPipelineInfo() throws {
        let client = try Client()
        let pipeline = try client.pipeline(client.library(Kernels.add), "reverse")
        let info = try XCTUnwrap(json(text { orchard_pipeline_info(pipeline, $0, $1, $2) }) as? [String: Any])
        XCTAssertEqual(info["function"] as? String, "reverse")
        XCTAssertEqual(info["threadExecutionWidth"] as? Int, 32)
        let bindings = try XCTUnwrap(info["bindings"] as? [[String: Any]])
        let buffers = bindings.filter { $0["kind"] as? String == "buffer" }
        XCTAssertEqual(buffers.map { $0["name"] as? String }, ["from", "to"])
        XCTAssertEqual(buffers.first?["access"] as? String, "read")
        XCTAssertEqual(bindings.first { $0["kind"] as? String == "threadgroup" }?["name"] as? String, "scratch")
    }

    func testCapabilitiesAreProbedByRunning() throws {
        let client = try Client()
        let info = try XCTUnwrap(json(text { orchard_device_info(client.context, 1, $0, $1, $2) }) as? [String: Any])
        let capabilities = try XCTUnwrap(info["capabilities"] as? [String: [String: Any]])
        XCTAssertEqual(Set(capabilities.keys), ["bfloat", "simdReduction", "simdMatrix", "tensorOps"])
        for (name, capability) in capabilities {
            XCTAssertEqual(
                (capability["reason"] as? String)?.isEmpty, capability["supported"] as? Bool, "\(name): \(capability)")
        }
        if SoftwareDevice.isPresent {
            for name in ["bfloat", "simdReduction", "simdMatrix"] {
                XCTAssertEqual(capabilities[name]?["supported"] as? Bool, true, "\(capabilities)")
            }
        }
    }
}
