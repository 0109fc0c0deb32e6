// The parts of Metal 4 that compute programs use: command queues, allocators and buffers, argument tables and
// compilers. Rendering, machine learning models and archives are not included.

/// An address in a buffer, as `MTLBuffer.gpuAddress` gives it.
public typealias MTLGPUAddress = UInt64

/// The parts of a pass that barriers and fences order.
public struct MTLStages: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var vertex: MTLStages { MTLStages(rawValue: 1 << 0) }
    public static var fragment: MTLStages { MTLStages(rawValue: 1 << 1) }
    public static var tile: MTLStages { MTLStages(rawValue: 1 << 2) }
    public static var object: MTLStages { MTLStages(rawValue: 1 << 3) }
    public static var mesh: MTLStages { MTLStages(rawValue: 1 << 4) }
    public static var resourceState: MTLStages { MTLStages(rawValue: 1 << 26) }
    public static var dispatch: MTLStages { MTLStages(rawValue: 1 << 27) }
    public static var blit: MTLStages { MTLStages(rawValue: 1 << 28) }
    public static var accelerationStructure: MTLStages { MTLStages(rawValue: 1 << 29) }
    public static var machineLearning: MTLStages { MTLStages(rawValue: 1 << 30) }
    public static var all: MTLStages { MTLStages(rawValue: UInt(Int.max)) }
}

public struct MTL4VisibilityOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var device: MTL4VisibilityOptions { MTL4VisibilityOptions(rawValue: 1) }
    public static var resourceAlias: MTL4VisibilityOptions { MTL4VisibilityOptions(rawValue: 2) }
}

// MARK: Argument tables

public class MTL4ArgumentTableDescriptor: NSObject, NSCopying {
    public var maxBufferBindCount = 0
    public var maxTextureBindCount = 0
    public var maxSamplerStateBindCount = 0
    public var initializeBindings = false
    public var supportAttributeStrides = false
    public var label: String?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4ArgumentTableDescriptor()
        copy.maxBufferBindCount = maxBufferBindCount
        copy.maxTextureBindCount = maxTextureBindCount
        copy.maxSamplerStateBindCount = maxSamplerStateBindCount
        copy.initializeBindings = initializeBindings
        copy.supportAttributeStrides = supportAttributeStrides
        copy.label = label
        return copy
    }
}

public protocol MTL4ArgumentTable: NSObjectProtocol {
    var device: any MTLDevice { get }
    var label: String? { get }
    func setAddress(_ gpuAddress: MTLGPUAddress, index bindingIndex: Int)
    func setAddress(_ gpuAddress: MTLGPUAddress, attributeStride stride: Int, index bindingIndex: Int)
    func setResource(_ resourceID: MTLResourceID, bufferIndex bindingIndex: Int)
    func setTexture(_ resourceID: MTLResourceID, index bindingIndex: Int)
    func setSamplerState(_ resourceID: MTLResourceID, index bindingIndex: Int)
}

// MARK: Commands

public class MTL4CommandAllocatorDescriptor: NSObject, NSCopying {
    public var label: String?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4CommandAllocatorDescriptor()
        copy.label = label
        return copy
    }
}

public protocol MTL4CommandAllocator: NSObjectProtocol {
    var device: any MTLDevice { get }
    var label: String? { get }
    func allocatedSize() -> UInt64
    func reset()
}

public class MTL4CommandBufferOptions: NSObject, NSCopying {
    public var logState: (any MTLLogState)?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4CommandBufferOptions()
        copy.logState = logState
        return copy
    }
}

public protocol MTL4CommandBuffer: NSObjectProtocol {
    var device: any MTLDevice { get }
    var label: String? { get set }
    func beginCommandBuffer(allocator: any MTL4CommandAllocator)
    func beginCommandBuffer(allocator: any MTL4CommandAllocator, options: MTL4CommandBufferOptions)
    func endCommandBuffer()
    func makeComputeCommandEncoder() -> (any MTL4ComputeCommandEncoder)?
    func useResidencySet(_ residencySet: any MTLResidencySet)
    func useResidencySets(_ residencySets: [any MTLResidencySet])
    func pushDebugGroup(_ string: String)
    func popDebugGroup()
}

public protocol MTL4CommandEncoder: NSObjectProtocol {
    var label: String? { get set }
    var commandBuffer: (any MTL4CommandBuffer)? { get }
    func barrier(
        afterQueueStages: MTLStages, beforeStages: MTLStages, visibilityOptions: MTL4VisibilityOptions)
    func barrier(
        afterStages: MTLStages, beforeQueueStages: MTLStages, visibilityOptions: MTL4VisibilityOptions)
    func barrier(
        afterEncoderStages: MTLStages, beforeEncoderStages: MTLStages, visibilityOptions: MTL4VisibilityOptions)
    func updateFence(_ fence: any MTLFence, afterEncoderStages: MTLStages)
    func waitForFence(_ fence: any MTLFence, beforeEncoderStages: MTLStages)
    func insertDebugSignpost(_ string: String)
    func pushDebugGroup(_ string: String)
    func popDebugGroup()
    func endEncoding()
}

// Apple's declarations have the default argument `[.device]`.
extension MTL4CommandEncoder {
    public func barrier(afterQueueStages: MTLStages, beforeStages: MTLStages) {
        barrier(afterQueueStages: afterQueueStages, beforeStages: beforeStages, visibilityOptions: .device)
    }

    public func barrier(afterStages: MTLStages, beforeQueueStages: MTLStages) {
        barrier(afterStages: afterStages, beforeQueueStages: beforeQueueStages, visibilityOptions: .device)
    }

    public func barrier(afterEncoderStages: MTLStages, beforeEncoderStages: MTLStages) {
        barrier(
            afterEncoderStages: afterEncoderStages, beforeEncoderStages: beforeEncoderStages,
            visibilityOptions: .device)
    }
}

public protocol MTL4ComputeCommandEncoder: MTL4CommandEncoder {
    func stages() -> MTLStages
    func setComputePipelineState(_ state: any MTLComputePipelineState)
    func setArgumentTable(_ argumentTable: (any MTL4ArgumentTable)?)
    func setThreadgroupMemoryLength(_ length: Int, index: Int)
    func dispatchThreads(threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
    func dispatchThreadgroups(threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
    func dispatchThreadgroups(indirectBuffer: MTLGPUAddress, threadsPerThreadgroup: MTLSize)
    func copy(
        sourceBuffer: any MTLBuffer, sourceOffset: Int, destinationBuffer: any MTLBuffer, destinationOffset: Int,
        size: Int)
    func copy(
        sourceTensor: any MTLTensor, sourceOrigin: MTLTensorExtents, sourceDimensions: MTLTensorExtents,
        destinationTensor: any MTLTensor, destinationOrigin: MTLTensorExtents,
        destinationDimensions: MTLTensorExtents)
    func copy(sourceTexture: any MTLTexture, destinationTexture: any MTLTexture)
    func fill(buffer: any MTLBuffer, range: Range<Int>, value: UInt8)
    func generateMipmaps(texture: any MTLTexture)
}

public class MTL4CommandQueueDescriptor: NSObject, NSCopying {
    public var label: String?
    public var feedbackQueue: DispatchQueue?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4CommandQueueDescriptor()
        copy.label = label
        copy.feedbackQueue = feedbackQueue
        return copy
    }
}

public protocol MTL4CommitFeedback: NSObjectProtocol {
    var error: (any Error)? { get }
    var gpuStartTime: CFTimeInterval { get }
    var gpuEndTime: CFTimeInterval { get }
}

public typealias MTL4CommitFeedbackHandler = @Sendable (any MTL4CommitFeedback) -> Void

public class MTL4CommitOptions: NSObject {
    var handlers: [MTL4CommitFeedbackHandler] = []

    public func addFeedbackHandler(_ block: @escaping MTL4CommitFeedbackHandler) { handlers.append(block) }
}

public protocol MTL4CommandQueue: NSObjectProtocol, Sendable {
    var device: any MTLDevice { get }
    var label: String? { get }
    func commit(_ commandBuffers: [any MTL4CommandBuffer])
    func commit(_ commandBuffers: [any MTL4CommandBuffer], options: MTL4CommitOptions)
    func signalEvent(_ event: any MTLEvent, value: UInt64)
    func waitForEvent(_ event: any MTLEvent, value: UInt64)
    func addResidencySet(_ residencySet: any MTLResidencySet)
    func addResidencySets(_ residencySets: [any MTLResidencySet])
    func removeResidencySet(_ residencySet: any MTLResidencySet)
    func removeResidencySets(_ residencySets: [any MTLResidencySet])
}

public let MTL4CommandQueueErrorDomain = "MTL4CommandQueueErrorDomain"

public struct MTL4CommandQueueError: _BridgedStoredNSError, Sendable {
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTL4CommandQueueError

        case none = 0
        case timeout = 1
        case notPermitted = 2
        case outOfMemory = 3
        case deviceRemoved = 4
        case accessRevoked = 5
        case `internal` = 6
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTL4CommandQueueErrorDomain }
    public static var none: Code { .none }
    public static var timeout: Code { .timeout }
    public static var notPermitted: Code { .notPermitted }
    public static var outOfMemory: Code { .outOfMemory }
    public static var deviceRemoved: Code { .deviceRemoved }
    public static var accessRevoked: Code { .accessRevoked }
    public static var `internal`: Code { .internal }
}
