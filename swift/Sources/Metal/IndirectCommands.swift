// Indirect command buffers, which this device does not support.

public struct MTLIndirectCommandType: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var draw: MTLIndirectCommandType { MTLIndirectCommandType(rawValue: 1) }
    public static var drawIndexed: MTLIndirectCommandType { MTLIndirectCommandType(rawValue: 2) }
    public static var drawPatches: MTLIndirectCommandType { MTLIndirectCommandType(rawValue: 4) }
    public static var drawIndexedPatches: MTLIndirectCommandType { MTLIndirectCommandType(rawValue: 8) }
    public static var concurrentDispatch: MTLIndirectCommandType { MTLIndirectCommandType(rawValue: 32) }
    public static var concurrentDispatchThreads: MTLIndirectCommandType { MTLIndirectCommandType(rawValue: 64) }
}

public class MTLIndirectCommandBufferDescriptor: NSObject, NSCopying {
    public var commandTypes: MTLIndirectCommandType = []
    public var inheritPipelineState = true
    public var inheritBuffers = true
    public var maxVertexBufferBindCount = 0
    public var maxFragmentBufferBindCount = 0
    public var maxKernelBufferBindCount = 0
    public var maxKernelThreadgroupMemoryBindCount = 0
    public var supportDynamicAttributeStride = false
    public var supportRayTracing = false

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLIndirectCommandBufferDescriptor()
        copy.commandTypes = commandTypes
        copy.inheritPipelineState = inheritPipelineState
        copy.inheritBuffers = inheritBuffers
        copy.maxVertexBufferBindCount = maxVertexBufferBindCount
        copy.maxFragmentBufferBindCount = maxFragmentBufferBindCount
        copy.maxKernelBufferBindCount = maxKernelBufferBindCount
        copy.maxKernelThreadgroupMemoryBindCount = maxKernelThreadgroupMemoryBindCount
        copy.supportDynamicAttributeStride = supportDynamicAttributeStride
        copy.supportRayTracing = supportRayTracing
        return copy
    }
}

public struct MTLIndirectCommandBufferExecutionRange: Sendable {
    public var location: UInt32
    public var length: UInt32

    public init() { (location, length) = (0, 0) }

    public init(location: UInt32, length: UInt32) { (self.location, self.length) = (location, length) }
}

public protocol MTLIndirectComputeCommand: NSObjectProtocol {
    func setComputePipelineState(_ pipelineState: any MTLComputePipelineState)
    func setKernelBuffer(_ buffer: any MTLBuffer, offset: Int, at index: Int)
    func setThreadgroupMemoryLength(_ length: Int, index: Int)
    func concurrentDispatchThreadgroups(_ threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
    func concurrentDispatchThreads(_ threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
    func setBarrier()
    func clearBarrier()
    func reset()
}

public protocol MTLIndirectRenderCommand: NSObjectProtocol {
    func setRenderPipelineState(_ pipelineState: any MTLRenderPipelineState)
    func setVertexBuffer(_ buffer: any MTLBuffer, offset: Int, at index: Int)
    func setVertexBuffer(_ buffer: any MTLBuffer, offset: Int, attributeStride stride: Int, at index: Int)
    func setFragmentBuffer(_ buffer: any MTLBuffer, offset: Int, at index: Int)
    func setObjectBuffer(_ buffer: any MTLBuffer, offset: Int, at index: Int)
    func setObjectThreadgroupMemoryLength(_ length: Int, at index: Int)
    func setMeshBuffer(_ buffer: any MTLBuffer, offset: Int, at index: Int)
    func drawPrimitives(
        _ primitiveType: MTLPrimitiveType, vertexStart: Int, vertexCount: Int, instanceCount: Int, baseInstance: Int)
    func drawIndexedPrimitives(
        _ primitiveType: MTLPrimitiveType, indexCount: Int, indexType: MTLIndexType, indexBuffer: any MTLBuffer,
        indexBufferOffset: Int, instanceCount: Int, baseVertex: Int, baseInstance: Int)
    func drawPatches(
        _ numberOfPatchControlPoints: Int, patchStart: Int, patchCount: Int, patchIndexBuffer: (any MTLBuffer)?,
        patchIndexBufferOffset: Int, instanceCount: Int, baseInstance: Int, tessellationFactorBuffer: any MTLBuffer,
        tessellationFactorBufferOffset: Int, tessellationFactorBufferInstanceStride: Int)
    func drawIndexedPatches(
        _ numberOfPatchControlPoints: Int, patchStart: Int, patchCount: Int, patchIndexBuffer: (any MTLBuffer)?,
        patchIndexBufferOffset: Int, controlPointIndexBuffer: any MTLBuffer, controlPointIndexBufferOffset: Int,
        instanceCount: Int, baseInstance: Int, tessellationFactorBuffer: any MTLBuffer,
        tessellationFactorBufferOffset: Int, tessellationFactorBufferInstanceStride: Int)
    func drawMeshThreadgroups(
        _ threadgroupsPerGrid: MTLSize, threadsPerObjectThreadgroup: MTLSize, threadsPerMeshThreadgroup: MTLSize)
    func drawMeshThreads(
        _ threadsPerGrid: MTLSize, threadsPerObjectThreadgroup: MTLSize, threadsPerMeshThreadgroup: MTLSize)
    func setBarrier()
    func clearBarrier()
    func reset()
}

public protocol MTLIndirectCommandBuffer: MTLResource {
    var size: Int { get }
    var gpuResourceID: MTLResourceID { get }
    func reset(_ range: Range<Int>)
    func indirectRenderCommandAt(_ commandIndex: Int) -> any MTLIndirectRenderCommand
    func indirectComputeCommandAt(_ commandIndex: Int) -> any MTLIndirectComputeCommand
}

extension SoftwareDevice {
    func makeIndirectCommandBuffer(
        descriptor: MTLIndirectCommandBufferDescriptor, maxCommandCount maxCount: Int, options: MTLResourceOptions
    ) -> (any MTLIndirectCommandBuffer)? {
        note("\(name) has no indirect command buffers: makeIndirectCommandBuffer gives nil; encode the dispatches")
        return nil
    }
}

extension SoftwareComputeEncoder {
    func executeCommandsInBuffer(
        _ indirectCommandBuffer: any MTLIndirectCommandBuffer, range executionRange: Range<Int>
    ) {
        misuse(debugName, "executeCommandsInBuffer:withRange:", "this device has no indirect command buffers.")
    }

    func executeCommandsInBuffer(
        _ indirectCommandbuffer: any MTLIndirectCommandBuffer, indirectBuffer: any MTLBuffer, offset: Int
    ) {
        misuse(
            debugName, "executeCommandsInBuffer:indirectBuffer:offset:",
            "this device has no indirect command buffers.")
    }
}
