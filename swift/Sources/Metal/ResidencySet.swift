public class MTLResidencySetDescriptor: NSObject, NSCopying {
    public var label: String?
    public var initialCapacity = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLResidencySetDescriptor()
        copy.label = label
        copy.initialCapacity = initialCapacity
        return copy
    }
}

public protocol MTLResidencySet: NSObjectProtocol {
    var device: any MTLDevice { get }
    var label: String? { get }
    var allocatedSize: UInt64 { get }
    var allAllocations: [any MTLAllocation] { get }
    var allocationCount: Int { get }
    func requestResidency()
    func endResidency()
    func addAllocation(_ allocation: any MTLAllocation)
    func addAllocations(_ allocations: [any MTLAllocation])
    func removeAllocation(_ allocation: any MTLAllocation)
    func removeAllocations(_ allocations: [any MTLAllocation])
    func removeAllAllocations()
    func containsAllocation(_ anAllocation: any MTLAllocation) -> Bool
    func commit()
}
