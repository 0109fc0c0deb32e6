// Render passes, which this device does not support: only descriptors exist.

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

/// A rectangle of pixels: (`originX`, `originY`) is its upper left corner. Depths are from `znear` to `zfar`.
public struct MTLViewport: Sendable {
    public var originX: Double
    public var originY: Double
    public var width: Double
    public var height: Double
    public var znear: Double
    public var zfar: Double

    public init() { self.init(originX: 0, originY: 0, width: 0, height: 0, znear: 0, zfar: 0) }

    public init(originX: Double, originY: Double, width: Double, height: Double, znear: Double, zfar: Double) {
        (self.originX, self.originY, self.width, self.height) = (originX, originY, width, height)
        (self.znear, self.zfar) = (znear, zfar)
    }
}

public struct MTLScissorRect: Sendable {
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int

    public init() { self.init(x: 0, y: 0, width: 0, height: 0) }

    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
}

public struct MTLVertexAmplificationViewMapping: Sendable {
    public var viewportArrayIndexOffset: UInt32
    public var renderTargetArrayIndexOffset: UInt32

    public init() { self.init(viewportArrayIndexOffset: 0, renderTargetArrayIndexOffset: 0) }

    public init(viewportArrayIndexOffset: UInt32, renderTargetArrayIndexOffset: UInt32) {
        self.viewportArrayIndexOffset = viewportArrayIndexOffset
        self.renderTargetArrayIndexOffset = renderTargetArrayIndexOffset
    }
}

public struct MTLSamplePosition: Sendable {
    public var x: Float
    public var y: Float

    public init() { self.init(x: 0, y: 0) }

    public init(x: Float, y: Float) { (self.x, self.y) = (x, y) }
}

public func MTLSamplePositionMake(_ x: Float, _ y: Float) -> MTLSamplePosition { MTLSamplePosition(x: x, y: y) }

public class MTLRenderPassAttachmentDescriptor: NSObject, NSCopying {
    public var texture: (any MTLTexture)?
    public var level = 0
    public var slice = 0
    public var depthPlane = 0
    public var resolveTexture: (any MTLTexture)?
    public var resolveLevel = 0
    public var resolveSlice = 0
    public var resolveDepthPlane = 0
    public var loadAction = MTLLoadAction.dontCare
    public var storeAction = MTLStoreAction.dontCare
    public var storeActionOptions: MTLStoreActionOptions = []

    public func copy(with zone: NSZone? = nil) -> Any { copied(to: MTLRenderPassAttachmentDescriptor()) }

    func copied<Attachment: MTLRenderPassAttachmentDescriptor>(to copy: Attachment) -> Attachment {
        (copy.texture, copy.level, copy.slice, copy.depthPlane) = (texture, level, slice, depthPlane)
        (copy.resolveTexture, copy.resolveLevel) = (resolveTexture, resolveLevel)
        (copy.resolveSlice, copy.resolveDepthPlane) = (resolveSlice, resolveDepthPlane)
        (copy.loadAction, copy.storeAction) = (loadAction, storeAction)
        copy.storeActionOptions = storeActionOptions
        return copy
    }
}

public class MTLRenderPassColorAttachmentDescriptor: MTLRenderPassAttachmentDescriptor {
    public var clearColor = MTLClearColor(red: 0, green: 0, blue: 0, alpha: 1)

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = copied(to: MTLRenderPassColorAttachmentDescriptor())
        copy.clearColor = clearColor
        return copy
    }
}

public class MTLRenderPassDepthAttachmentDescriptor: MTLRenderPassAttachmentDescriptor {
    public var clearDepth = 1.0
    public var depthResolveFilter = MTLMultisampleDepthResolveFilter.sample0

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = copied(to: MTLRenderPassDepthAttachmentDescriptor())
        (copy.clearDepth, copy.depthResolveFilter) = (clearDepth, depthResolveFilter)
        return copy
    }
}

public class MTLRenderPassStencilAttachmentDescriptor: MTLRenderPassAttachmentDescriptor {
    public var clearStencil: UInt32 = 0
    public var stencilResolveFilter = MTLMultisampleStencilResolveFilter.sample0

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = copied(to: MTLRenderPassStencilAttachmentDescriptor())
        (copy.clearStencil, copy.stencilResolveFilter) = (clearStencil, stencilResolveFilter)
        return copy
    }
}

public final class MTLRenderPassColorAttachmentDescriptorArray:
    _DescriptorArray<MTLRenderPassColorAttachmentDescriptor>
{
    init() { super.init(MTLRenderPassColorAttachmentDescriptor()) }
}

public class MTLRenderPassDescriptor: NSObject, NSCopying {
    public let colorAttachments = MTLRenderPassColorAttachmentDescriptorArray()
    public var depthAttachment: MTLRenderPassDepthAttachmentDescriptor! = MTLRenderPassDepthAttachmentDescriptor()
    public var stencilAttachment: MTLRenderPassStencilAttachmentDescriptor! =
        MTLRenderPassStencilAttachmentDescriptor()
    public var visibilityResultBuffer: (any MTLBuffer)?
    public var visibilityResultType = MTLVisibilityResultType.reset
    public var renderTargetWidth = 0
    public var renderTargetHeight = 0
    public var renderTargetArrayLength = 0
    public var imageblockSampleLength = 0
    public var threadgroupMemoryLength = 0
    public var tileWidth = 0
    public var tileHeight = 0
    public var defaultRasterSampleCount = 0
    public var rasterizationRateMap: (any MTLRasterizationRateMap)?
    private var samplePositions: [MTLSamplePosition] = []

    public func setSamplePositions(_ positions: [MTLSamplePosition]) { samplePositions = positions }

    public func getSamplePositions() -> [MTLSamplePosition] { samplePositions }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPassDescriptor()
        copy.colorAttachments.take(colorAttachments)
        copy.depthAttachment = depthAttachment?.copy() as? MTLRenderPassDepthAttachmentDescriptor
        copy.stencilAttachment = stencilAttachment?.copy() as? MTLRenderPassStencilAttachmentDescriptor
        (copy.visibilityResultBuffer, copy.visibilityResultType) = (visibilityResultBuffer, visibilityResultType)
        (copy.renderTargetWidth, copy.renderTargetHeight) = (renderTargetWidth, renderTargetHeight)
        (copy.renderTargetArrayLength, copy.tileWidth, copy.tileHeight) =
            (renderTargetArrayLength, tileWidth, tileHeight)
        (copy.imageblockSampleLength, copy.threadgroupMemoryLength) =
            (imageblockSampleLength, threadgroupMemoryLength)
        (copy.defaultRasterSampleCount, copy.rasterizationRateMap) = (defaultRasterSampleCount, rasterizationRateMap)
        copy.samplePositions = samplePositions
        return copy
    }
}

/// Something that a window shows, such as a texture of a layer. This device shows nothing.
public protocol MTLDrawable: NSObjectProtocol {
    var drawableID: Int { get }
    var presentedTime: CFTimeInterval { get }
    func present()
    func present(at presentationTime: CFTimeInterval)
    func present(afterMinimumDuration duration: CFTimeInterval)
    func addPresentedHandler(_ block: @escaping (any MTLDrawable) -> Void)
}

extension SoftwareCommandBuffer {
    func present(_ drawable: any MTLDrawable) { refusePresenting("presentDrawable:") }

    func present(_ drawable: any MTLDrawable, atTime presentationTime: CFTimeInterval) {
        refusePresenting("presentDrawable:atTime:")
    }

    func present(_ drawable: any MTLDrawable, afterMinimumDuration duration: CFTimeInterval) {
        refusePresenting("presentDrawable:afterMinimumDuration:")
    }

    private func refusePresenting(_ method: String) {
        misuse("MTLCommandBuffer", method, "this device has no screen; read the texture's bytes instead.")
    }
}
