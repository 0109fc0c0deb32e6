public enum MTLFunctionType: UInt, Sendable {
    case vertex = 1
    case fragment = 2
    case kernel = 3
    case visible = 5
    case intersection = 6
    case mesh = 7
    case object = 8
}

public enum MTLPatchType: UInt, Sendable {
    case none = 0
    case triangle = 1
    case quad = 2
}

public struct MTLFunctionOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var compileToBinary: MTLFunctionOptions { MTLFunctionOptions(rawValue: 1) }
    public static var storeFunctionInMetalPipelinesScript: MTLFunctionOptions { MTLFunctionOptions(rawValue: 2) }
    public static var failOnBinaryArchiveMiss: MTLFunctionOptions { MTLFunctionOptions(rawValue: 4) }
    public static var pipelineIndependent: MTLFunctionOptions { MTLFunctionOptions(rawValue: 8) }
}

public class MTLFunctionConstant: NSObject {
    public let name: String
    public let type: MTLDataType
    public let index: Int
    public let required: Bool

    init(name: String, type: MTLDataType, index: Int, required: Bool) {
        self.name = name
        self.type = type
        self.index = index
        self.required = required
    }
}

public class MTLFunctionDescriptor: NSObject, NSCopying {
    public var name: String?
    public var specializedName: String?
    public var constantValues: MTLFunctionConstantValues?
    public var options: MTLFunctionOptions = []
    public var binaryArchives: [any MTLBinaryArchive]?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLFunctionDescriptor()
        copy.name = name
        copy.specializedName = specializedName
        copy.constantValues = constantValues?.copy() as? MTLFunctionConstantValues
        copy.options = options
        copy.binaryArchives = binaryArchives
        return copy
    }
}

public protocol MTLFunction: NSObjectProtocol, Sendable {
    var label: String? { get set }
    var device: any MTLDevice { get }
    var functionType: MTLFunctionType { get }
    var patchType: MTLPatchType { get }
    var patchControlPointCount: Int { get }
    var name: String { get }
    var functionConstantsDictionary: [String: MTLFunctionConstant] { get }
    var options: MTLFunctionOptions { get }
    func makeArgumentEncoder(bufferIndex: Int) -> any MTLArgumentEncoder
}
