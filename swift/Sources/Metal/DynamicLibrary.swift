public protocol MTLDynamicLibrary: NSObjectProtocol, Sendable {
    var label: String? { get set }
    var device: any MTLDevice { get }
    var installName: String { get }
    func serialize(to url: URL) throws
}
