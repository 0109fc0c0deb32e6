public enum MTLSamplerMinMagFilter: UInt, Sendable {
    case nearest = 0
    case linear = 1
}

public enum MTLSamplerMipFilter: UInt, Sendable {
    case notMipmapped = 0
    case nearest = 1
    case linear = 2
}

public enum MTLSamplerAddressMode: UInt, Sendable {
    case clampToEdge = 0
    case mirrorClampToEdge = 1
    case `repeat` = 2
    case mirrorRepeat = 3
    case clampToZero = 4
    case clampToBorderColor = 5
}

public enum MTLSamplerBorderColor: UInt, Sendable {
    case transparentBlack = 0
    case opaqueBlack = 1
    case opaqueWhite = 2
}

public enum MTLCompareFunction: UInt, Sendable {
    case never = 0
    case less = 1
    case equal = 2
    case lessEqual = 3
    case greater = 4
    case notEqual = 5
    case greaterEqual = 6
    case always = 7
}

public class MTLSamplerDescriptor: NSObject, NSCopying {
    public var minFilter = MTLSamplerMinMagFilter.nearest
    public var magFilter = MTLSamplerMinMagFilter.nearest
    public var mipFilter = MTLSamplerMipFilter.notMipmapped
    public var maxAnisotropy = 1
    public var sAddressMode = MTLSamplerAddressMode.clampToEdge
    public var tAddressMode = MTLSamplerAddressMode.clampToEdge
    public var rAddressMode = MTLSamplerAddressMode.clampToEdge
    public var borderColor = MTLSamplerBorderColor.transparentBlack
    public var normalizedCoordinates = true
    public var lodMinClamp: Float = 0
    public var lodMaxClamp: Float = .greatestFiniteMagnitude
    public var lodAverage = false
    public var compareFunction = MTLCompareFunction.never
    public var supportArgumentBuffers = false
    public var label: String?

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLSamplerDescriptor()
        copy.minFilter = minFilter
        copy.magFilter = magFilter
        copy.mipFilter = mipFilter
        copy.maxAnisotropy = maxAnisotropy
        copy.sAddressMode = sAddressMode
        copy.tAddressMode = tAddressMode
        copy.rAddressMode = rAddressMode
        copy.borderColor = borderColor
        copy.normalizedCoordinates = normalizedCoordinates
        copy.lodMinClamp = lodMinClamp
        copy.lodMaxClamp = lodMaxClamp
        copy.lodAverage = lodAverage
        copy.compareFunction = compareFunction
        copy.supportArgumentBuffers = supportArgumentBuffers
        copy.label = label
        return copy
    }
}

public protocol MTLSamplerState: NSObjectProtocol, Sendable {
    var label: String? { get }
    var device: any MTLDevice { get }
    var gpuResourceID: MTLResourceID { get }
}
