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
