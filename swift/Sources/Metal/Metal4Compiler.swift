// Compilers of Metal 4, and the descriptors of libraries, functions and pipelines.

public class MTL4FunctionDescriptor: NSObject, NSCopying {
    override init() {}

    public func copy(with zone: NSZone? = nil) -> Any { MTL4FunctionDescriptor() }
}

public class MTL4LibraryFunctionDescriptor: MTL4FunctionDescriptor {
    public var name: String?
    public var library: (any MTLLibrary)?

    public override init() {}

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4LibraryFunctionDescriptor()
        copy.name = name
        copy.library = library
        return copy
    }
}

public class MTL4SpecializedFunctionDescriptor: MTL4FunctionDescriptor {
    @NSCopying public var functionDescriptor: MTL4FunctionDescriptor?
    public var specializedName: String?
    @NSCopying public var constantValues: MTLFunctionConstantValues?

    public override init() {}

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4SpecializedFunctionDescriptor()
        copy.functionDescriptor = functionDescriptor
        copy.specializedName = specializedName
        copy.constantValues = constantValues
        return copy
    }
}

public class MTL4LibraryDescriptor: NSObject, NSCopying {
    public var source: String?
    @NSCopying public var options: MTLCompileOptions?
    public var name: String?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4LibraryDescriptor()
        copy.source = source
        copy.options = options
        copy.name = name
        return copy
    }
}

public class MTL4PipelineDescriptor: NSObject, NSCopying {
    public var label: String?

    override init() {}

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4PipelineDescriptor()
        copy.label = label
        return copy
    }
}

public class MTL4ComputePipelineDescriptor: MTL4PipelineDescriptor {
    @NSCopying public var computeFunctionDescriptor: MTL4FunctionDescriptor?
    public var threadGroupSizeIsMultipleOfThreadExecutionWidth = false
    public var maxTotalThreadsPerThreadgroup = 0
    public var requiredThreadsPerThreadgroup = MTLSizeMake(0, 0, 0)

    public override init() {}

    public func reset() { assign(MTL4ComputePipelineDescriptor()) }

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4ComputePipelineDescriptor()
        copy.assign(self)
        return copy
    }

    private func assign(_ other: MTL4ComputePipelineDescriptor) {
        label = other.label
        computeFunctionDescriptor = other.computeFunctionDescriptor
        threadGroupSizeIsMultipleOfThreadExecutionWidth = other.threadGroupSizeIsMultipleOfThreadExecutionWidth
        maxTotalThreadsPerThreadgroup = other.maxTotalThreadsPerThreadgroup
        requiredThreadsPerThreadgroup = other.requiredThreadsPerThreadgroup
    }
}

public class MTL4CompilerDescriptor: NSObject, NSCopying {
    public var label: String?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTL4CompilerDescriptor()
        copy.label = label
        return copy
    }
}

public class MTL4CompilerTaskOptions: NSObject, NSCopying {
    public func copy(with zone: NSZone? = nil) -> Any { MTL4CompilerTaskOptions() }
}

public protocol MTL4Compiler: NSObjectProtocol, Sendable {
    var device: any MTLDevice { get }
    var label: String? { get }
    func makeLibrary(descriptor: MTL4LibraryDescriptor) throws -> any MTLLibrary
    func makeComputePipelineState(
        descriptor: MTL4ComputePipelineDescriptor, compilerTaskOptions: MTL4CompilerTaskOptions?
    ) throws -> any MTLComputePipelineState
}

extension MTL4Compiler {
    public func makeComputePipelineState(
        descriptor: MTL4ComputePipelineDescriptor
    ) throws -> any MTLComputePipelineState {
        try makeComputePipelineState(descriptor: descriptor, compilerTaskOptions: nil)
    }
}

/// Compiles before each call returns: the software device has no compiler tasks in the background.
final class SoftwareCompiler: NSObject, MTL4Compiler, @unchecked Sendable {
    let label: String?
    private let softwareDevice: SoftwareDevice

    init(_ device: SoftwareDevice, _ descriptor: MTL4CompilerDescriptor) {
        softwareDevice = device
        label = descriptor.label
    }

    var device: any MTLDevice { softwareDevice }

    func makeLibrary(descriptor: MTL4LibraryDescriptor) throws -> any MTLLibrary {
        guard let source = descriptor.source else {
            throw MTLLibraryError(.unsupported, "MTL4LibraryDescriptor.source is nil: set the library's source.")
        }
        let library = try device.makeLibrary(source: source, options: descriptor.options)
        library.label = descriptor.name
        return library
    }

    func makeComputePipelineState(
        descriptor: MTL4ComputePipelineDescriptor, compilerTaskOptions: MTL4CompilerTaskOptions?
    ) throws -> any MTLComputePipelineState {
        let pipeline = MTLComputePipelineDescriptor()
        pipeline.label = descriptor.label
        pipeline.computeFunction = try function(descriptor.computeFunctionDescriptor)
        pipeline.threadGroupSizeIsMultipleOfThreadExecutionWidth =
            descriptor.threadGroupSizeIsMultipleOfThreadExecutionWidth
        pipeline.maxTotalThreadsPerThreadgroup = descriptor.maxTotalThreadsPerThreadgroup
        let required = descriptor.requiredThreadsPerThreadgroup
        let state = try device.makeComputePipelineState(descriptor: pipeline, options: [], reflection: nil)
        if required.width > 0, let software = state as? SoftwarePipeline {
            software.requiredThreadsPerThreadgroup = required
        }
        return state
    }

    private func function(_ descriptor: MTL4FunctionDescriptor?) throws -> any MTLFunction {
        if let specialized = descriptor as? MTL4SpecializedFunctionDescriptor {
            guard let plain = specialized.functionDescriptor as? MTL4LibraryFunctionDescriptor else {
                throw Self.missing("MTL4SpecializedFunctionDescriptor.functionDescriptor")
            }
            return try function(plain, specialized.constantValues, specialized.specializedName)
        }
        guard let plain = descriptor as? MTL4LibraryFunctionDescriptor else {
            throw Self.missing("MTL4ComputePipelineDescriptor.computeFunctionDescriptor")
        }
        return try function(plain, nil, nil)
    }

    private func function(
        _ descriptor: MTL4LibraryFunctionDescriptor, _ constants: MTLFunctionConstantValues?, _ newName: String?
    ) throws -> any MTLFunction {
        guard let library = descriptor.library, let name = descriptor.name else {
            throw Self.missing("the library or the name of a MTL4LibraryFunctionDescriptor")
        }
        let function = MTLFunctionDescriptor()
        function.name = name
        function.constantValues = constants
        function.specializedName = newName
        return try library.makeFunction(descriptor: function)
    }

    private static func missing(_ what: String) -> any Error {
        MTLLibraryError(.functionNotFound, "\(what) is nil: set it to the function of a library.")
    }
}
