// Rendering, which this device does not support: descriptors exist, but pipelines are rejected, and there is no
// encoder.

public enum MTLLoadAction: UInt, Sendable {
    case dontCare = 0
    case load = 1
    case clear = 2
}

public enum MTLStoreAction: UInt, Sendable {
    case dontCare = 0
    case store = 1
    case multisampleResolve = 2
    case storeAndMultisampleResolve = 3
    case unknown = 4
    case customSampleDepthStore = 5
}

public enum MTLPrimitiveType: UInt, Sendable {
    case point = 0
    case line = 1
    case lineStrip = 2
    case triangle = 3
    case triangleStrip = 4
}

public struct MTLClearColor: Sendable {
    public var red: Double
    public var green: Double
    public var blue: Double
    public var alpha: Double

    public init() { self.init(red: 0, green: 0, blue: 0, alpha: 0) }

    public init(red: Double, green: Double, blue: Double, alpha: Double) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }
}

public func MTLClearColorMake(_ red: Double, _ green: Double, _ blue: Double, _ alpha: Double) -> MTLClearColor {
    MTLClearColor(red: red, green: green, blue: blue, alpha: alpha)
}

public class MTLRenderPipelineColorAttachmentDescriptor: NSObject, NSCopying {
    public var pixelFormat = MTLPixelFormat.invalid
    public var isBlendingEnabled = false

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPipelineColorAttachmentDescriptor()
        copy.pixelFormat = pixelFormat
        copy.isBlendingEnabled = isBlendingEnabled
        return copy
    }
}

public class MTLRenderPipelineColorAttachmentDescriptorArray: NSObject {
    private var kept: [Int: MTLRenderPipelineColorAttachmentDescriptor] = [:]

    public subscript(index: Int) -> MTLRenderPipelineColorAttachmentDescriptor! {
        get {
            if kept[index] == nil { kept[index] = MTLRenderPipelineColorAttachmentDescriptor() }
            return kept[index]
        }
        set { kept[index] = newValue }
    }

    func take(_ other: MTLRenderPipelineColorAttachmentDescriptorArray) {
        kept = other.kept.mapValues { $0.copy() as! MTLRenderPipelineColorAttachmentDescriptor }
    }
}

public class MTLRenderPipelineDescriptor: NSObject, NSCopying {
    public var label: String?
    public var vertexFunction: (any MTLFunction)?
    public var fragmentFunction: (any MTLFunction)?
    public var rasterSampleCount = 1
    public var isRasterizationEnabled = true
    public var depthAttachmentPixelFormat = MTLPixelFormat.invalid
    public var stencilAttachmentPixelFormat = MTLPixelFormat.invalid
    public let colorAttachments = MTLRenderPipelineColorAttachmentDescriptorArray()

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPipelineDescriptor()
        copy.label = label
        copy.vertexFunction = vertexFunction
        copy.fragmentFunction = fragmentFunction
        copy.rasterSampleCount = rasterSampleCount
        copy.isRasterizationEnabled = isRasterizationEnabled
        copy.depthAttachmentPixelFormat = depthAttachmentPixelFormat
        copy.stencilAttachmentPixelFormat = stencilAttachmentPixelFormat
        copy.colorAttachments.take(colorAttachments)
        return copy
    }
}

public class MTLRenderPassColorAttachmentDescriptor: NSObject, NSCopying {
    public var texture: (any MTLTexture)?
    public var level = 0
    public var slice = 0
    public var loadAction = MTLLoadAction.dontCare
    public var storeAction = MTLStoreAction.dontCare
    public var clearColor = MTLClearColor(red: 0, green: 0, blue: 0, alpha: 1)

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPassColorAttachmentDescriptor()
        copy.texture = texture
        copy.level = level
        copy.slice = slice
        copy.loadAction = loadAction
        copy.storeAction = storeAction
        copy.clearColor = clearColor
        return copy
    }
}

public class MTLRenderPassColorAttachmentDescriptorArray: NSObject {
    private var kept: [Int: MTLRenderPassColorAttachmentDescriptor] = [:]

    public subscript(index: Int) -> MTLRenderPassColorAttachmentDescriptor! {
        get {
            if kept[index] == nil { kept[index] = MTLRenderPassColorAttachmentDescriptor() }
            return kept[index]
        }
        set { kept[index] = newValue }
    }

    func take(_ other: MTLRenderPassColorAttachmentDescriptorArray) {
        kept = other.kept.mapValues { $0.copy() as! MTLRenderPassColorAttachmentDescriptor }
    }
}

public class MTLRenderPassDescriptor: NSObject, NSCopying {
    public var renderTargetWidth = 0
    public var renderTargetHeight = 0
    public var renderTargetArrayLength = 0
    public let colorAttachments = MTLRenderPassColorAttachmentDescriptorArray()

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPassDescriptor()
        copy.renderTargetWidth = renderTargetWidth
        copy.renderTargetHeight = renderTargetHeight
        copy.renderTargetArrayLength = renderTargetArrayLength
        copy.colorAttachments.take(colorAttachments)
        return copy
    }
}

public protocol MTLRenderPipelineState: NSObjectProtocol, Sendable {
    var label: String? { get }
    var device: any MTLDevice { get }
}

public protocol MTLRenderCommandEncoder: MTLCommandEncoder {
    func setRenderPipelineState(_ pipelineState: any MTLRenderPipelineState)
    func setVertexBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setVertexBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setFragmentBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setFragmentBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setFragmentTexture(_ texture: (any MTLTexture)?, index: Int)
    func setFragmentSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func drawPrimitives(type primitiveType: MTLPrimitiveType, vertexStart: Int, vertexCount: Int)
    func drawPrimitives(
        type primitiveType: MTLPrimitiveType, vertexStart: Int, vertexCount: Int, instanceCount: Int)
}

extension SoftwareDevice {
    func makeRenderPipelineState(descriptor: MTLRenderPipelineDescriptor) throws -> any MTLRenderPipelineState {
        throw MTLLibraryError(.unsupported, "\(name) does not render: it runs compute kernels only.")
    }
}

extension SoftwareCommandBuffer {
    func makeRenderCommandEncoder(descriptor renderPassDescriptor: MTLRenderPassDescriptor)
        -> (any MTLRenderCommandEncoder)?
    {
        note("\(SoftwareDevice.shared.name) does not render: makeRenderCommandEncoder gives nil")
        return nil
    }
}
