public class MTLBinaryArchiveDescriptor: NSObject, NSCopying {
    public var url: URL?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLBinaryArchiveDescriptor()
        copy.url = url
        return copy
    }
}

public protocol MTLBinaryArchive: NSObjectProtocol, Sendable {
    var label: String? { get set }
    var device: any MTLDevice { get }
    func addComputePipelineFunctions(descriptor: MTLComputePipelineDescriptor) throws
    func addFunction(descriptor: MTLFunctionDescriptor, library: any MTLLibrary) throws
    func serialize(to url: URL) throws
}
