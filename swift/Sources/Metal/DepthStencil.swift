// Depth and stencil tests of rendering, which this device does not support.

public class MTLStencilDescriptor: NSObject, NSCopying {
    public var stencilCompareFunction = MTLCompareFunction.always
    public var stencilFailureOperation = MTLStencilOperation.keep
    public var depthFailureOperation = MTLStencilOperation.keep
    public var depthStencilPassOperation = MTLStencilOperation.keep
    public var readMask: UInt32 = 0xFFFF_FFFF
    public var writeMask: UInt32 = 0xFFFF_FFFF

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLStencilDescriptor()
        (copy.stencilCompareFunction, copy.stencilFailureOperation) = (stencilCompareFunction, stencilFailureOperation)
        (copy.depthFailureOperation, copy.depthStencilPassOperation) =
            (depthFailureOperation, depthStencilPassOperation)
        (copy.readMask, copy.writeMask) = (readMask, writeMask)
        return copy
    }
}

public class MTLDepthStencilDescriptor: NSObject, NSCopying {
    public var depthCompareFunction = MTLCompareFunction.always
    public var isDepthWriteEnabled = false
    public var frontFaceStencil: MTLStencilDescriptor! = MTLStencilDescriptor()
    public var backFaceStencil: MTLStencilDescriptor! = MTLStencilDescriptor()
    public var label: String?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLDepthStencilDescriptor()
        (copy.depthCompareFunction, copy.isDepthWriteEnabled) = (depthCompareFunction, isDepthWriteEnabled)
        copy.frontFaceStencil = frontFaceStencil?.copy() as? MTLStencilDescriptor
        copy.backFaceStencil = backFaceStencil?.copy() as? MTLStencilDescriptor
        copy.label = label
        return copy
    }
}

public protocol MTLDepthStencilState: NSObjectProtocol, Sendable {
    var label: String? { get }
    var device: any MTLDevice { get }
    var gpuResourceID: MTLResourceID { get }
}

extension SoftwareDevice {
    func makeDepthStencilState(descriptor: MTLDepthStencilDescriptor) -> (any MTLDepthStencilState)? {
        note("\(name) does not render: makeDepthStencilState gives nil")
        return nil
    }
}
