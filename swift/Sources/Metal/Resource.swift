public enum MTLPurgeableState: UInt, Sendable {
    case keepCurrent = 1
    case nonVolatile = 2
    case volatile = 3
    case empty = 4
}

public enum MTLCPUCacheMode: UInt, Sendable {
    case defaultCache = 0
    case writeCombined = 1
}

public enum MTLStorageMode: UInt, Sendable {
    case shared = 0
    case managed = 1
    case `private` = 2
    case memoryless = 3
}

public enum MTLHazardTrackingMode: UInt, Sendable {
    case `default` = 0
    case untracked = 1
    case tracked = 2
}

/// Cache mode in bits 0–3, storage mode in bits 4–7, hazard tracking in bits 8 and 9.
public struct MTLResourceOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var cpuCacheModeDefaultCache: MTLResourceOptions { MTLResourceOptions(rawValue: 0) }
    public static var cpuCacheModeWriteCombined: MTLResourceOptions { MTLResourceOptions(rawValue: 1) }
    public static var storageModeShared: MTLResourceOptions { MTLResourceOptions(rawValue: 0) }
    public static var storageModeManaged: MTLResourceOptions { MTLResourceOptions(rawValue: 16) }
    public static var storageModePrivate: MTLResourceOptions { MTLResourceOptions(rawValue: 32) }
    public static var storageModeMemoryless: MTLResourceOptions { MTLResourceOptions(rawValue: 48) }
    public static var hazardTrackingModeDefault: MTLResourceOptions { MTLResourceOptions(rawValue: 0) }
    public static var hazardTrackingModeUntracked: MTLResourceOptions { MTLResourceOptions(rawValue: 256) }
    public static var hazardTrackingModeTracked: MTLResourceOptions { MTLResourceOptions(rawValue: 512) }
    public static var optionCPUCacheModeDefault: MTLResourceOptions { .cpuCacheModeDefaultCache }
    public static var optionCPUCacheModeWriteCombined: MTLResourceOptions { .cpuCacheModeWriteCombined }
}

/// Objects that occupy device memory, such as buffers and heaps.
public protocol MTLAllocation: NSObjectProtocol {
    var allocatedSize: Int { get }
}

public protocol MTLResource: MTLAllocation {
    var label: String? { get set }
    var device: any MTLDevice { get }
    var cpuCacheMode: MTLCPUCacheMode { get }
    var storageMode: MTLStorageMode { get }
    var hazardTrackingMode: MTLHazardTrackingMode { get }
    var resourceOptions: MTLResourceOptions { get }
    var heap: (any MTLHeap)? { get }
    var heapOffset: Int { get }
    @discardableResult
    func setPurgeableState(_ state: MTLPurgeableState) -> MTLPurgeableState
    func makeAliasable()
    func isAliasable() -> Bool
}
