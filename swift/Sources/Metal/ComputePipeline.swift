public enum MTLShaderValidation: Int, Sendable {
    case `default` = 0
    case enabled = 1
    case disabled = 2
}

public enum MTLMutability: UInt, Sendable {
    case `default` = 0
    case mutable = 1
    case immutable = 2
}

public class MTLPipelineBufferDescriptor: NSObject, NSCopying {
    public var mutability = MTLMutability.default

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLPipelineBufferDescriptor()
        copy.mutability = mutability
        return copy
    }
}

public class MTLPipelineBufferDescriptorArray: NSObject {
    private var descriptors: [Int: MTLPipelineBufferDescriptor] = [:]

    public subscript(bufferIndex: Int) -> MTLPipelineBufferDescriptor! {
        get {
            if let known = descriptors[bufferIndex] { return known }
            let fresh = MTLPipelineBufferDescriptor()
            descriptors[bufferIndex] = fresh
            return fresh
        }
        set { descriptors[bufferIndex] = newValue?.copy() as? MTLPipelineBufferDescriptor }
    }

    func replace(with other: MTLPipelineBufferDescriptorArray) {
        descriptors = other.descriptors.compactMapValues { $0.copy() as? MTLPipelineBufferDescriptor }
    }
}

public class MTLLinkedFunctions: NSObject, NSCopying {
    public var functions: [any MTLFunction]?
    public var binaryFunctions: [any MTLFunction]?
    public var privateFunctions: [any MTLFunction]?
    public var groups: [String: [any MTLFunction]]?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLLinkedFunctions()
        copy.functions = functions
        copy.binaryFunctions = binaryFunctions
        copy.privateFunctions = privateFunctions
        copy.groups = groups
        return copy
    }
}

public class MTLComputePipelineDescriptor: NSObject, NSCopying {
    public var label: String?
    public var computeFunction: (any MTLFunction)?
    public var threadGroupSizeIsMultipleOfThreadExecutionWidth = false
    public var maxTotalThreadsPerThreadgroup = 0
    public private(set) var buffers = MTLPipelineBufferDescriptorArray()
    public var binaryArchives: [any MTLBinaryArchive]?
    public var preloadedLibraries: [any MTLDynamicLibrary] = []
    @NSCopying public var linkedFunctions: MTLLinkedFunctions? = MTLLinkedFunctions()
    public var supportAddingBinaryFunctions = false
    public var maxCallStackDepth = 1
    public var supportIndirectCommandBuffers = false
    public var shaderValidation = MTLShaderValidation.default

    public func reset() { assign(MTLComputePipelineDescriptor()) }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLComputePipelineDescriptor()
        copy.assign(self)
        return copy
    }

    private func assign(_ other: MTLComputePipelineDescriptor) {
        label = other.label
        computeFunction = other.computeFunction
        threadGroupSizeIsMultipleOfThreadExecutionWidth = other.threadGroupSizeIsMultipleOfThreadExecutionWidth
        maxTotalThreadsPerThreadgroup = other.maxTotalThreadsPerThreadgroup
        buffers.replace(with: other.buffers)
        binaryArchives = other.binaryArchives
        preloadedLibraries = other.preloadedLibraries
        linkedFunctions = other.linkedFunctions
        supportAddingBinaryFunctions = other.supportAddingBinaryFunctions
        maxCallStackDepth = other.maxCallStackDepth
        supportIndirectCommandBuffers = other.supportIndirectCommandBuffers
        shaderValidation = other.shaderValidation
    }
}

public protocol MTLComputePipelineState: NSObjectProtocol, Sendable {
    var label: String? { get }
    var device: any MTLDevice { get }
    var maxTotalThreadsPerThreadgroup: Int { get }
    var threadExecutionWidth: Int { get }
    var staticThreadgroupMemoryLength: Int { get }
    var supportIndirectCommandBuffers: Bool { get }
    var gpuResourceID: MTLResourceID { get }
    var shaderValidation: MTLShaderValidation { get }
    func functionHandle(function: any MTLFunction) -> (any MTLFunctionHandle)?
    func makeComputePipelineStateWithAdditionalBinaryFunctions(functions: [any MTLFunction]) throws
        -> any MTLComputePipelineState
}

public protocol MTLFunctionHandle: NSObjectProtocol, Sendable {
    var functionType: MTLFunctionType { get }
    var name: String { get }
    var device: any MTLDevice { get }
}
