public enum MTLCaptureDestination: Int, Sendable {
    case developerTools = 1
    case gpuTraceDocument = 2
}

public class MTLCaptureDescriptor: NSObject, NSCopying {
    public var captureObject: Any?
    public var destination = MTLCaptureDestination.developerTools
    public var outputURL: URL?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLCaptureDescriptor()
        copy.captureObject = captureObject
        copy.destination = destination
        copy.outputURL = outputURL
        return copy
    }
}

public protocol MTLCaptureScope: NSObjectProtocol {
    var label: String? { get set }
    var device: any MTLDevice { get }
    var commandQueue: (any MTLCommandQueue)? { get }
    func begin()
    func end()
}

public class MTLCaptureManager: NSObject {
    nonisolated(unsafe) private static let manager = MTLCaptureManager()

    public class func shared() -> MTLCaptureManager { manager }

    public var defaultCaptureScope: (any MTLCaptureScope)?
    public let isCapturing = false

    private override init() {}

    public func makeCaptureScope(device: any MTLDevice) -> any MTLCaptureScope { SoftwareCaptureScope(queue: nil) }

    public func makeCaptureScope(commandQueue: any MTLCommandQueue) -> any MTLCaptureScope {
        SoftwareCaptureScope(queue: commandQueue)
    }

    /// Captures require Apple's GPU tools, which Linux lacks.
    public func supportsDestination(_ destination: MTLCaptureDestination) -> Bool { false }

    public func startCapture(with descriptor: MTLCaptureDescriptor) throws {
        guard descriptor.captureObject != nil else {
            throw MTLCaptureError(
                .invalidDescriptor, "The capture descriptor names no device, queue or scope to capture.")
        }
        throw MTLCaptureError(
            .notSupported,
            "Capturing is not supported on \(SoftwareDevice.shared.name); run on macOS to get a .gputrace.")
    }

    public func stopCapture() {}
}
