import Metal
import MetalRuntime
import XCTest

final class DispatchTests: MetalTestCase {
    func testThreadsAndThreadgroups() throws {
        let x = buffer((0..<100).map(Float.init)), y = device.makeBuffer(length: 400)!
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("twice"))
            encoder.setBuffers([x, y], offsets: [0, 0], range: 0..<2)
            encoder.dispatchThreads(MTLSizeMake(100, 1, 1), threadsPerThreadgroup: MTLSizeMake(32, 1, 1))
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(y, offset: 80, index: 0)
            encoder.dispatchThreadgroups(MTLSizeMake(2, 1, 1), threadsPerThreadgroup: MTLSizeMake(10, 1, 1))
        }
        XCTAssertEqual(floats(y), (0..<100).map { 2 * Float($0) + ((20..<40).contains($0) ? 1 : 0) })
    }

    func testIndirectCounts() throws {
        let x = buffer([0, 0, 0, 0, 0, 0, 0, 0])
        var counts = [UInt32](repeating: 0xdead, count: 1) + [3, 1, 1] + [0, 1, 1]
        let indirect = try XCTUnwrap(device.makeBuffer(bytes: &counts, length: counts.count * 4))
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            for offset in [4, 16] {
                encoder.dispatchThreadgroups(
                    indirectBuffer: indirect, indirectBufferOffset: offset, threadsPerThreadgroup: MTLSizeMake(2, 1, 1))
            }
        }
        XCTAssertEqual(floats(x), [1, 1, 1, 1, 1, 1, 0, 0])
    }

    func testWhatWasBoundAtADispatchCounts() throws {
        let x = buffer([1, 1])
        try run { encoder in
            encoder.setComputePipelineState(try pipeline("scale"))
            encoder.setBuffer(x, offset: 0, index: 0)
            for factor: Float in [3, 5] {
                var scale: (Float, Float) = (factor, 1)
                encoder.setBytes(&scale, length: 8, index: 1)
                encoder.dispatchThreads(MTLSizeMake(2, 1, 1), threadsPerThreadgroup: MTLSizeMake(2, 1, 1))
            }
        }
        XCTAssertEqual(floats(x), [21, 21])
    }

    func testDispatchesOfAConcurrentEncoderNeedABarrier() throws {
        XCTAssertEqual(try racesOfTwoIncrements { _, _ in }, 1, "without a barrier")
        XCTAssertEqual(try racesOfTwoIncrements { encoder, _ in encoder.memoryBarrier(scope: .buffers) }, 0)
        XCTAssertEqual(try racesOfTwoIncrements { encoder, x in encoder.memoryBarrier(resources: [x]) }, 0)
        XCTAssertEqual(try racesOfTwoIncrements { encoder, _ in encoder.memoryBarrier(scope: .textures) }, 1)
        XCTAssertEqual(try racesOfTwoIncrements(.serial) { _, _ in }, 0, "a serial encoder")
    }

    /// Returns the findings of kind "dispatch-race" for two dispatches on one buffer.
    private func racesOfTwoIncrements(
        _ type: MTLDispatchType = .concurrent, between: (any MTLComputeCommandEncoder, any MTLBuffer) -> Void
    ) throws -> Int {
        mrt_setting_set("check", "1", nil)
        defer { mrt_setting_set("check", "0", nil) }
        let x = buffer([1, 2, 3, 4])
        x.label = "x"
        try run(dispatchType: type) { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.dispatchThreads(MTLSizeMake(4, 1, 1), threadsPerThreadgroup: MTLSizeMake(4, 1, 1))
            between(encoder, x)
            encoder.dispatchThreads(MTLSizeMake(4, 1, 1), threadsPerThreadgroup: MTLSizeMake(4, 1, 1))
        }
        let json = try XCTUnwrap(mrt_findings_json(true))
        defer { mrt_string_free(json) }
        struct Finding: Decodable { let kind: String }
        let findings = try JSONDecoder().decode([Finding].self, from: Data(String(cString: json).utf8))
        return findings.filter { $0.kind == "dispatch-race" }.count
    }

    func testAFaultOfAKernelFailsItsCommandBufferOnly() throws {
        let source = """
            kernel void wild(device float* x [[buffer(0)]], \
            uint i [[thread_position_in_grid]]) { x[i + 1000000000000ul] = 1; }
            """
        let library = try device.makeLibrary(
            source: "#include <metal_stdlib>\nusing namespace metal;\n" + source, options: nil)
        let wild = try device.makeComputePipelineState(function: XCTUnwrap(library.makeFunction(name: "wild")))
        let x = buffer([1, 2])
        let failed = run { encoder in
            encoder.setComputePipelineState(wild)
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.dispatchThreads(one, threadsPerThreadgroup: one)
        }
        XCTAssertEqual(failed.status, .error)
        XCTAssertEqual((failed.error as? MTLCommandBufferError)?.code, .pageFault)
        XCTAssertTrue(failed.error?.localizedDescription.contains("kIOGPUCommandBufferCallbackErrorPageFault") ?? false)
        let next = try run { encoder in
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(x, offset: 0, index: 0)
            encoder.dispatchThreads(MTLSizeMake(2, 1, 1), threadsPerThreadgroup: MTLSizeMake(2, 1, 1))
        }
        XCTAssertEqual(next.status, .completed)
        XCTAssertEqual(floats(x), [2, 3])
    }
}
