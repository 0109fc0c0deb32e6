public class MTLCommandQueueDescriptor: NSObject, NSCopying {
    public var maxCommandBufferCount = 64
    public var logState: (any MTLLogState)?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLCommandQueueDescriptor()
        copy.maxCommandBufferCount = maxCommandBufferCount
        copy.logState = logState
        return copy
    }
}

public protocol MTLCommandQueue: NSObjectProtocol, Sendable {
    var label: String? { get set }
    var device: any MTLDevice { get }
    func makeCommandBuffer() -> (any MTLCommandBuffer)?
    func makeCommandBuffer(descriptor: MTLCommandBufferDescriptor) -> (any MTLCommandBuffer)?
    func makeCommandBufferWithUnretainedReferences() -> (any MTLCommandBuffer)?
    func addResidencySet(_ residencySet: any MTLResidencySet)
    func addResidencySets(_ residencySets: [any MTLResidencySet])
    func removeResidencySet(_ residencySet: any MTLResidencySet)
    func removeResidencySets(_ residencySets: [any MTLResidencySet])
    func insertDebugCaptureBoundary()
}
