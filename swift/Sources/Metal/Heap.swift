public enum MTLHeapType: Int, Sendable {
    case automatic = 0
    case placement = 1
    case sparse = 2
}

public class MTLHeapDescriptor: NSObject, NSCopying {
    public var size = 0
    public var storageMode = MTLStorageMode.private
    public var cpuCacheMode = MTLCPUCacheMode.defaultCache
    /// Heaps are untracked unless their descriptor says otherwise; resources outside heaps are tracked.
    public var hazardTrackingMode = MTLHazardTrackingMode.default
    public var type = MTLHeapType.automatic

    public var resourceOptions: MTLResourceOptions {
        get { MTLResourceOptions(cpuCacheMode, storageMode, hazardTrackingMode) }
        set { (cpuCacheMode, storageMode, hazardTrackingMode) = newValue.parts }
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLHeapDescriptor()
        copy.size = size
        copy.resourceOptions = resourceOptions
        copy.type = type
        return copy
    }
}

public protocol MTLHeap: MTLAllocation {
    var label: String? { get set }
    var device: any MTLDevice { get }
    var type: MTLHeapType { get }
    var storageMode: MTLStorageMode { get }
    var cpuCacheMode: MTLCPUCacheMode { get }
    var hazardTrackingMode: MTLHazardTrackingMode { get }
    var resourceOptions: MTLResourceOptions { get }
    var size: Int { get }
    var usedSize: Int { get }
    var currentAllocatedSize: Int { get }
    func maxAvailableSize(alignment: Int) -> Int
    func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)?
    func makeBuffer(length: Int, options: MTLResourceOptions, offset: Int) -> (any MTLBuffer)?
    func makeTexture(descriptor: MTLTextureDescriptor) -> (any MTLTexture)?
    func makeTexture(descriptor: MTLTextureDescriptor, offset: Int) -> (any MTLTexture)?
    @discardableResult
    func setPurgeableState(_ state: MTLPurgeableState) -> MTLPurgeableState
}

// A protocol cannot declare the default arguments that Apple's declarations have.
extension MTLHeap {
    public func makeBuffer(length: Int) -> (any MTLBuffer)? { makeBuffer(length: length, options: []) }

    public func makeBuffer(length: Int, offset: Int) -> (any MTLBuffer)? {
        makeBuffer(length: length, options: [], offset: offset)
    }
}
