import MetalRuntime

/// An argument of a kernel as reported by reflection: a buffer, threadgroup memory, a texture or a sampler.
final class SoftwareBinding: NSObject, MTLBufferBinding, MTLThreadgroupBinding, MTLTextureBinding, @unchecked Sendable {
    let name: String
    let type: MTLBindingType
    let access: MTLBindingAccess
    let index: Int
    let isUsed: Bool
    let isArgument = true
    /// A reference reads a whole element; a pointer need not be dereferenced.
    let isReference: Bool
    private let space: mrt_argument_space
    let elementSize: Int
    let elementAlignment: Int
    let textureType: MTLTextureType
    let isDepthTexture: Bool
    let textureDataType: MTLDataType
    let arrayLength: Int
    let bufferDataType: MTLDataType
    let bufferPointerType: MTLPointerType?

    init(_ argument: mrt_argument) {
        name = String(cString: argument.name)
        type = Self.types[argument.kind] ?? .buffer
        let isTexture = type == .texture
        let depths = UInt32(MRT_DEPTH_ARGUMENT)
        isDepthTexture = isTexture && argument.element_size & depths != 0
        textureType = isTexture ? MTLTextureType(rawValue: UInt(argument.element_size & ~depths)) ?? .type2D : .type2D
        textureDataType = isTexture ? MTLDataType(rawValue: UInt(argument.data_type)) ?? .none : .none
        arrayLength = Int(argument.count)
        access = isTexture && argument.element_alignment == 2 ? .writeOnly : argument.is_const ? .readOnly : .readWrite
        index = Int(argument.index)
        isUsed = argument.is_active
        isReference = argument.is_reference
        space = mrt_argument_space(rawValue: argument.space)
        elementSize = Int(argument.element_size)
        elementAlignment = Int(argument.element_alignment)
        bufferDataType = MTLDataType(rawValue: UInt(argument.data_type)) ?? .none
        bufferPointerType =
            type == .buffer
            ? MTLPointerType(
                elementType: bufferDataType, access: access, alignment: elementAlignment, dataSize: elementSize)
            : nil
    }

    private static let types: [UInt32: MTLBindingType] = [
        MRT_ARGUMENT_BUFFER.rawValue: .buffer, MRT_ARGUMENT_THREADGROUP.rawValue: .threadgroupMemory,
        MRT_ARGUMENT_TEXTURE.rawValue: .texture, MRT_ARGUMENT_SAMPLER.rawValue: .sampler,
    ]

    /// A buffer's offset must be a multiple of this: 32 bytes for constant memory on a Mac (Metal Feature Set Tables),
    /// otherwise the element's alignment.
    var offsetAlignment: Int { space == MRT_SPACE_CONSTANT ? 32 : max(elementAlignment, 1) }

    var bufferAlignment: Int { type == .buffer ? elementAlignment : 0 }
    var bufferDataSize: Int { type == .buffer ? elementSize : 0 }
    var threadgroupMemoryAlignment: Int { type == .threadgroupMemory ? elementAlignment : 0 }
    var threadgroupMemoryDataSize: Int { type == .threadgroupMemory ? elementSize : 0 }
}
