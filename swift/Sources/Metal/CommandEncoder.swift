public struct MTLResourceUsage: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var read: MTLResourceUsage { MTLResourceUsage(rawValue: 1) }
    public static var write: MTLResourceUsage { MTLResourceUsage(rawValue: 2) }
    public static var sample: MTLResourceUsage { MTLResourceUsage(rawValue: 4) }
}

public struct MTLBarrierScope: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var buffers: MTLBarrierScope { MTLBarrierScope(rawValue: 1) }
    public static var textures: MTLBarrierScope { MTLBarrierScope(rawValue: 2) }
    public static var renderTargets: MTLBarrierScope { MTLBarrierScope(rawValue: 4) }
}

public protocol MTLCommandEncoder: NSObjectProtocol {
    var device: any MTLDevice { get }
    var label: String? { get set }
    func endEncoding()
    func insertDebugSignpost(_ string: String)
    func pushDebugGroup(_ string: String)
    func popDebugGroup()
}
