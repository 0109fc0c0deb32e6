import COrchard
import Foundation

/// Capabilities of the device, determined by compiling and running kernels: a virtual machine's device reports families
/// that it lacks, and does not report others that it has.
final class Capabilities: @unchecked Sendable {
    /// Each kernel, launched as one SIMD-group, writes 1 into `result` if the capability works.
    private struct Probe {
        let name: String
        let languageVersion: UInt32
        let source: String
    }

    private static let metal31: UInt32 = 3 << 16 | 1
    private static let metal40: UInt32 = 4 << 16
    private static let simdWidth: UInt32 = 32

    private static let probes = [
        Probe(
            name: "bfloat", languageVersion: metal31,
            source: """
                #include <metal_stdlib>
                using namespace metal;
                kernel void probe(device uint *result [[buffer(0)]], uint lane [[thread_position_in_grid]]) {
                    bfloat sum = bfloat(256.0f + float(lane / 32)) + bfloat(1.0f);
                    if (lane == 0) result[0] = float(sum) == 256.0f ? 1 : 0;
                }
                """),
        Probe(
            name: "simdReduction", languageVersion: metal31,
            source: """
                #include <metal_stdlib>
                using namespace metal;
                kernel void probe(device uint *result [[buffer(0)]], uint lane [[thread_position_in_grid]]) {
                    uint sum = simd_sum(lane);
                    if (lane == 0) result[0] = sum == 496 ? 1 : 0;
                }
                """),
        Probe(
            name: "simdMatrix", languageVersion: metal31,
            source: """
                #include <metal_stdlib>
                #include <metal_simdgroup_matrix>
                using namespace metal;
                kernel void probe(device uint *result [[buffer(0)]], uint lane [[thread_position_in_grid]]) {
                    threadgroup float product[64];
                    simdgroup_float8x8 two = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);
                    simdgroup_float8x8 three = make_filled_simdgroup_matrix<float, 8, 8>(3.0f);
                    simdgroup_float8x8 sum;
                    simdgroup_multiply(sum, two, three);
                    simdgroup_store(sum, product, 8);
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    if (lane == 0) result[0] = product[0] == 48.0f && product[63] == 48.0f ? 1 : 0;
                }
                """),
        Probe(
            name: "tensorOps", languageVersion: metal40,
            source: """
                #include <metal_stdlib>
                #include <metal_tensor>
                #include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
                using namespace metal;
                kernel void probe(device uint *result [[buffer(0)]], uint lane [[thread_position_in_grid]]) {
                    constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
                        16, 32, 16, false, false, false,
                        mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
                    mpp::tensor_ops::matmul2d<shape, execution_simdgroups<1>> product;
                    (void)product;
                    if (lane == 0) result[0] = 1;
                }
                """),
    ]

    private let lock = NSLock()
    private var found: [String: [String: Any]] = [:]

    /// Every capability, probed on first use.
    func all(on context: Context) throws -> [String: [String: Any]] {
        try lock.withLock {
            for probe in Self.probes where found[probe.name] == nil { found[probe.name] = try outcome(probe, context) }
            return found
        }
    }

    private func outcome(_ probe: Probe, _ context: Context) throws -> [String: Any] {
        do {
            let works = try run(probe, context)
            return ["supported": works, "reason": works ? "" : "the probe's kernel gave a wrong result"]
        } catch let error as OrchardError where error.status != ORCHARD_CLOSED {
            return ["supported": false, "reason": error.message]
        }
    }

    private func run(_ probe: Probe, _ context: Context) throws -> Bool {
        let request = LibraryRequest(
            name: "probe_\(probe.name)", source: probe.source, languageVersion: probe.languageVersion)
        let library = try context.libraries.library(request, for: context)
        let pipeline = try library.pipelines.pipeline(PipelineRequest(function: "probe"), of: library)
        let result = try context.makeBuffer(4, storage: Storage.shared.rawValue, zeroed: true, label: "probe")
        defer { context.discard(result) }
        let binding = DispatchRequest.Binding(
            buffer: result, index: 0, range: 0..<4, access: UInt32(ORCHARD_ACCESS_WRITE))
        let width = Self.simdWidth
        _ = try context.encode(
            DispatchRequest(
                pipeline: pipeline, grid: Extent((width, 1, 1)), gridIsThreads: true,
                threadgroup: Extent((width, 1, 1)),
                bindings: [binding]))
        var value: UInt32 = 0
        try withUnsafeMutableBytes(of: &value) { try context.read(result, 0..<4, to: $0.baseAddress!) }
        return value == 1
    }
}
