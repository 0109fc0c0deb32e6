public protocol MTLEvent: NSObjectProtocol, Sendable {
    var device: (any MTLDevice)? { get }
    var label: String? { get set }
}

public typealias MTLSharedEventNotificationBlock = @Sendable (any MTLSharedEvent, UInt64) -> Void

public protocol MTLSharedEvent: MTLEvent {
    var signaledValue: UInt64 { get set }
    @preconcurrency
    func notify(
        _ listener: MTLSharedEventListener, atValue value: UInt64, block: @escaping MTLSharedEventNotificationBlock)
    func makeSharedEventHandle() -> MTLSharedEventHandle
    func wait(untilSignaledValue value: UInt64, timeoutMS milliseconds: UInt64) -> Bool
}

/// The queue on which blocks passed to `notify` run.
public class MTLSharedEventListener: NSObject, @unchecked Sendable {
    public let dispatchQueue: DispatchQueue

    public override init() { dispatchQueue = DispatchQueue(label: "MTLSharedEventListener") }

    public init(dispatchQueue: DispatchQueue) { self.dispatchQueue = dispatchQueue }
}

/// Passes a shared event to another device object of this process.
public class MTLSharedEventHandle: NSObject {
    let event: SoftwareSharedEvent

    init(event: SoftwareSharedEvent) { self.event = event }

    public var label: String? { event.label }
}

public protocol MTLFence: NSObjectProtocol, Sendable {
    var device: any MTLDevice { get }
    var label: String? { get set }
}
