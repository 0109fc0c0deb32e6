// Argument encoders, which this device does not support. Programs fill argument buffers as structs that contain
// `gpuAddress`, as in Metal 3.

public class MTLArgumentDescriptor: NSObject, NSCopying {
    public var dataType = MTLDataType.none
    public var index = 0
    public var arrayLength = 0
    public var access = MTLBindingAccess.readOnly
    public var textureType = MTLTextureType.type2D
    public var constantBlockAlignment = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLArgumentDescriptor()
        copy.dataType = dataType
        copy.index = index
        copy.arrayLength = arrayLength
        copy.access = access
        copy.textureType = textureType
        copy.constantBlockAlignment = constantBlockAlignment
        return copy
    }
}

public protocol MTLArgumentEncoder: NSObjectProtocol {
    var device: any MTLDevice { get }
    var label: String? { get set }
    var encodedLength: Int { get }
    var alignment: Int { get }
    func setArgumentBuffer(_ argumentBuffer: (any MTLBuffer)?, offset: Int)
    func setArgumentBuffer(_ argumentBuffer: (any MTLBuffer)?, startOffset: Int, arrayElement: Int)
    func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setTexture(_ texture: (any MTLTexture)?, index: Int)
    func setTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func constantData(at index: Int) -> UnsafeMutableRawPointer
    func setIndirectCommandBuffer(_ indirectCommandBuffer: (any MTLIndirectCommandBuffer)?, index: Int)
    func makeArgumentEncoderForBuffer(atIndex index: Int) -> (any MTLArgumentEncoder)?
}

extension SoftwareDevice {
    func makeArgumentEncoder(arguments: [MTLArgumentDescriptor]) -> (any MTLArgumentEncoder)? {
        note("\(name) has no argument encoders: makeArgumentEncoder gives nil; fill a struct with each gpuAddress")
        return nil
    }
}

extension SoftwareFunction {
    func makeArgumentEncoder(bufferIndex: Int) -> any MTLArgumentEncoder {
        preconditionFailure(
            "\(SoftwareDevice.shared.name) has no argument encoders: fill a struct with the gpuAddress of each buffer.")
    }
}
