public enum MTLBindingType: Int, Sendable {
    case buffer = 0
    case threadgroupMemory = 1
    case texture = 2
    case sampler = 3
}

public enum MTLBindingAccess: UInt, Sendable {
    case readOnly = 0
    case readWrite = 1
    case writeOnly = 2
}

/// The older names of these types, used by `MTLArgument`.
public enum MTLArgumentType: UInt, Sendable {
    case buffer = 0
    case threadgroupMemory = 1
    case texture = 2
    case sampler = 3
}

public typealias MTLArgumentAccess = MTLBindingAccess

public class MTLPointerType: NSObject {
    public let elementType: MTLDataType
    public let access: MTLBindingAccess
    public let alignment: Int
    public let dataSize: Int

    init(elementType: MTLDataType, access: MTLBindingAccess, alignment: Int, dataSize: Int) {
        self.elementType = elementType
        self.access = access
        self.alignment = alignment
        self.dataSize = dataSize
    }
}

public protocol MTLBinding: NSObjectProtocol, Sendable {
    var name: String { get }
    var type: MTLBindingType { get }
    var access: MTLBindingAccess { get }
    var index: Int { get }
    var isUsed: Bool { get }
    var isArgument: Bool { get }
}

public protocol MTLBufferBinding: MTLBinding {
    var bufferAlignment: Int { get }
    var bufferDataSize: Int { get }
    var bufferDataType: MTLDataType { get }
    var bufferPointerType: MTLPointerType? { get }
}

public protocol MTLTextureBinding: MTLBinding {
    var textureType: MTLTextureType { get }
    var textureDataType: MTLDataType { get }
    var isDepthTexture: Bool { get }
    var arrayLength: Int { get }
}

public protocol MTLThreadgroupBinding: MTLBinding {
    var threadgroupMemoryAlignment: Int { get }
    var threadgroupMemoryDataSize: Int { get }
}

public class MTLArgument: NSObject {
    public let name: String
    public let type: MTLArgumentType
    public let access: MTLArgumentAccess
    public let index: Int
    public let isActive: Bool
    public let bufferAlignment: Int
    public let bufferDataSize: Int
    public let bufferDataType: MTLDataType
    public let bufferPointerType: MTLPointerType?
    public let threadgroupMemoryAlignment: Int
    public let threadgroupMemoryDataSize: Int
    public let arrayLength: Int
    public let isDepthTexture: Bool
    public let textureDataType: MTLDataType
    public let textureType: MTLTextureType

    init(_ binding: SoftwareBinding) {
        name = binding.name
        type = MTLArgumentType(rawValue: UInt(binding.type.rawValue)) ?? .buffer
        access = binding.access
        index = binding.index
        isActive = binding.isUsed
        bufferAlignment = binding.bufferAlignment
        bufferDataSize = binding.bufferDataSize
        bufferDataType = binding.bufferDataType
        bufferPointerType = binding.bufferPointerType
        threadgroupMemoryAlignment = binding.threadgroupMemoryAlignment
        threadgroupMemoryDataSize = binding.threadgroupMemoryDataSize
        arrayLength = binding.arrayLength
        isDepthTexture = binding.isDepthTexture
        textureDataType = binding.textureDataType
        textureType = binding.textureType
    }
}

public class MTLComputePipelineReflection: NSObject {
    public let bindings: [any MTLBinding]
    public let arguments: [MTLArgument]

    init(_ bindings: [SoftwareBinding]) {
        self.bindings = bindings
        arguments = bindings.map(MTLArgument.init)
    }
}
