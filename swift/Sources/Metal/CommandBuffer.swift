public enum MTLCommandBufferStatus: UInt, Sendable {
    case notEnqueued = 0
    case enqueued = 1
    case committed = 2
    case scheduled = 3
    case completed = 4
    case error = 5
}

public struct MTLCommandBufferErrorOption: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var encoderExecutionStatus: MTLCommandBufferErrorOption { MTLCommandBufferErrorOption(rawValue: 1) }
}

public enum MTLDispatchType: UInt, Sendable {
    case serial = 0
    case concurrent = 1
}

public class MTLCommandBufferDescriptor: NSObject, NSCopying {
    public var retainedReferences = true
    public var errorOptions: MTLCommandBufferErrorOption = []
    public var logState: (any MTLLogState)?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLCommandBufferDescriptor()
        copy.retainedReferences = retainedReferences
        copy.errorOptions = errorOptions
        copy.logState = logState
        return copy
    }
}

public class MTLComputePassDescriptor: NSObject, NSCopying {
    public var dispatchType = MTLDispatchType.serial
    public private(set) var sampleBufferAttachments = MTLComputePassSampleBufferAttachmentDescriptorArray()

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLComputePassDescriptor()
        copy.dispatchType = dispatchType
        copy.sampleBufferAttachments = sampleBufferAttachments.copied()
        return copy
    }
}

public class MTLBlitPassDescriptor: NSObject, NSCopying {
    public private(set) var sampleBufferAttachments = MTLBlitPassSampleBufferAttachmentDescriptorArray()

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLBlitPassDescriptor()
        copy.sampleBufferAttachments = sampleBufferAttachments.copied()
        return copy
    }
}

public typealias MTLCommandBufferHandler = @Sendable (any MTLCommandBuffer) -> Void

public protocol MTLCommandBuffer: NSObjectProtocol {
    var device: any MTLDevice { get }
    var commandQueue: any MTLCommandQueue { get }
    var retainedReferences: Bool { get }
    var errorOptions: MTLCommandBufferErrorOption { get }
    var label: String? { get set }
    var kernelStartTime: CFTimeInterval { get }
    var kernelEndTime: CFTimeInterval { get }
    var gpuStartTime: CFTimeInterval { get }
    var gpuEndTime: CFTimeInterval { get }
    var logs: any MTLLogContainer { get }
    var status: MTLCommandBufferStatus { get }
    var error: (any Error)? { get }
    func enqueue()
    func commit()
    @preconcurrency
    func addScheduledHandler(_ block: @escaping MTLCommandBufferHandler)
    @preconcurrency
    func addCompletedHandler(_ block: @escaping MTLCommandBufferHandler)
    func waitUntilScheduled()
    func waitUntilCompleted()
    func makeBlitCommandEncoder() -> (any MTLBlitCommandEncoder)?
    func makeBlitCommandEncoder(descriptor blitPassDescriptor: MTLBlitPassDescriptor) -> (any MTLBlitCommandEncoder)?
    func makeComputeCommandEncoder() -> (any MTLComputeCommandEncoder)?
    func makeComputeCommandEncoder(descriptor computePassDescriptor: MTLComputePassDescriptor)
        -> (any MTLComputeCommandEncoder)?
    func makeComputeCommandEncoder(dispatchType: MTLDispatchType) -> (any MTLComputeCommandEncoder)?
    func makeRenderCommandEncoder(descriptor renderPassDescriptor: MTLRenderPassDescriptor)
        -> (any MTLRenderCommandEncoder)?
    func makeParallelRenderCommandEncoder(descriptor renderPassDescriptor: MTLRenderPassDescriptor)
        -> (any MTLParallelRenderCommandEncoder)?
    func makeAccelerationStructureCommandEncoder() -> (any MTLAccelerationStructureCommandEncoder)?
    func makeAccelerationStructureCommandEncoder(descriptor: MTLAccelerationStructurePassDescriptor)
        -> (any MTLAccelerationStructureCommandEncoder)?
    func makeResourceStateCommandEncoder() -> (any MTLResourceStateCommandEncoder)?
    func resourceStateCommandEncoder(with resourceStatePassDescriptor: MTLResourceStatePassDescriptor)
        -> (any MTLResourceStateCommandEncoder)?
    func present(_ drawable: any MTLDrawable)
    func present(_ drawable: any MTLDrawable, atTime presentationTime: CFTimeInterval)
    func present(_ drawable: any MTLDrawable, afterMinimumDuration duration: CFTimeInterval)
    func encodeWaitForEvent(_ event: any MTLEvent, value: UInt64)
    func encodeSignalEvent(_ event: any MTLEvent, value: UInt64)
    func pushDebugGroup(_ string: String)
    func popDebugGroup()
    func useResidencySet(_ residencySet: any MTLResidencySet)
    func useResidencySets(_ residencySets: [any MTLResidencySet])
}

extension MTLCommandBuffer {
    /// The `async` form of `waitUntilCompleted`; it may be called before or after `commit()`.
    public func completed() async {
        await withCheckedContinuation { continuation in
            (self as? SoftwareCommandBuffer)?.whenReached(.completed) { continuation.resume() }
        }
    }

    /// The `async` form of `waitUntilScheduled`.
    public func scheduled() async {
        await withCheckedContinuation { continuation in
            (self as? SoftwareCommandBuffer)?.whenReached(.scheduled) { continuation.resume() }
        }
    }
}
