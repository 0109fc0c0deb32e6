import Metal
import MetalRuntime
import XCTest

/// A test with a device, a queue and some kernels, in which misuse is collected instead of ending the process.
/// Unexpected misuse fails the test.
class MetalTestCase: XCTestCase {
    static let source = """
        #include <metal_stdlib>
        using namespace metal;

        struct Scale { float factor; float offset; };

        kernel void twice(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          y[i] = 2 * x[i];
        }

        kernel void increment(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] += 1; }

        kernel void scale(device float* x [[buffer(0)]], constant Scale& s [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          x[i] = x[i] * s.factor + s.offset;
        }

        kernel void reverse(device float* x [[buffer(0)]], threadgroup float* t [[threadgroup(0)]],
                            uint i [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
          t[i] = x[i];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          x[i] = t[n - 1 - i];
        }

        kernel void fixedReverse(device float* x [[buffer(0)]], threadgroup float* t [[threadgroup(0)]],
                                 uint i [[thread_index_in_threadgroup]]) {
          threadgroup float kept[4096];
          kept[i] = x[i];
          t[i] = kept[i];
          x[i] = t[i];
        }

        kernel void gather(constant float4* x [[buffer(0)]], device float4* y [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          y[i] = x[i];
        }
        """

    private static let sharedLibrary = Result {
        try MTLCreateSystemDefaultDevice()!.makeLibrary(source: source, options: nil)
    }

    let device = MTLCreateSystemDefaultDevice()!
    private(set) lazy var queue = device.makeCommandQueue()!

    override func setUp() {
        super.setUp()
        continueAfterFailure = true
        Misuses.shared.start()
    }

    override func tearDown() {
        XCTAssertEqual(Misuses.shared.take(), [], "misuse that the test does not expect")
        Misuses.shared.stop()
        super.tearDown()
    }

    func pipeline(_ name: String) throws -> any MTLComputePipelineState {
        let function = try XCTUnwrap(Self.sharedLibrary.get().makeFunction(name: name))
        return try device.makeComputePipelineState(function: function)
    }

    func buffer(_ values: [Float], options: MTLResourceOptions = []) -> any MTLBuffer {
        device.makeBuffer(bytes: values, length: values.count * 4, options: options)!
    }

    func floats(_ buffer: any MTLBuffer) -> [Float] {
        Array(
            UnsafeBufferPointer(start: buffer.contents().assumingMemoryBound(to: Float.self), count: buffer.length / 4))
    }

    /// Encodes with a compute encoder, commits and waits.
    @discardableResult
    func run(
        on queue: (any MTLCommandQueue)? = nil, dispatchType: MTLDispatchType = .serial,
        _ encode: (any MTLComputeCommandEncoder) throws -> Void
    ) rethrows -> any MTLCommandBuffer {
        let commands = (queue ?? self.queue).makeCommandBuffer()!
        let encoder = commands.makeComputeCommandEncoder(dispatchType: dispatchType)!
        try encode(encoder)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        return commands
    }

    /// Runs `body`, which must break exactly one rule, with a message that contains `message`.
    func assertMisuse(
        _ message: String, file: StaticString = #filePath, line: UInt = #line, _ body: () throws -> Void
    ) rethrows {
        XCTAssertEqual(Misuses.shared.take(), [], "misuse before", file: file, line: line)
        try body()
        let sentences = Misuses.shared.take()
        XCTAssertEqual(sentences.count, 1, "\(sentences)", file: file, line: line)
        let sentence = sentences.first ?? ""
        XCTAssertTrue(sentence.contains(message), "\"\(sentence)\" lacks \"\(message)\"", file: file, line: line)
        XCTAssertTrue(
            sentence.hasPrefix("-[") && sentence.contains(": failed assertion `"), sentence, file: file, line: line)
    }
}

/// The messages that were passed to the handler.
final class Misuses: @unchecked Sendable {
    static let shared = Misuses()
    private let lock = NSLock()
    private var sentences: [String] = []

    func start() {
        mrt_misuse_set_handler({ sentence, _ in Misuses.shared.add(String(cString: sentence!)) }, nil)
    }

    func stop() {
        mrt_misuse_set_handler(nil, nil)
        if let json = mrt_findings_json(true) { mrt_string_free(json) }
    }

    func take() -> [String] {
        lock.withLock {
            defer { sentences = [] }
            return sentences
        }
    }

    private func add(_ sentence: String) { lock.withLock { sentences.append(sentence) } }
}

let one = MTLSizeMake(1, 1, 1)
