import Metal.MTLBuffer

let length = 1000

final class Adder {
    private let device: any MTLDevice
    private let state: any MTLComputePipelineState

    init(device: any MTLDevice) {
        self.device = device
        let function = device.makeDefaultLibrary()!.makeFunction(name: "add_arrays")!
        state = try! device.makeComputePipelineState(function: function)
    }

    /// How many results are not the sum of the first operand and of a new buffer, which holds zeros.
    func run() -> Int {
        let values = (0..<length).map { Float($0) / 3 }
        let first = device.makeBuffer(bytes: values, length: 4 * length)!
        let zeros = device.makeBuffer(length: 4 * length)!, result = device.makeBuffer(length: 4 * length)!
        let commands = device.makeCommandQueue()!.makeCommandBuffer()!, encoder = commands.makeComputeCommandEncoder()!
        encoder.setComputePipelineState(state)
        encoder.setBuffers([first, zeros, result], offsets: [0, 0, 0], range: 0..<3)
        let width = min(length, state.maxTotalThreadsPerThreadgroup)
        encoder.dispatchThreads(
            MTLSize(width: length, height: 1, depth: 1),
            threadsPerThreadgroup: MTLSize(width: width, height: 1, depth: 1))
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        let sums = result.contents().bindMemory(to: Float.self, capacity: length)
        return (0..<length).filter { sums[$0] != values[$0] }.count
    }
}
