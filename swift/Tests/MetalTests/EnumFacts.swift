import Metal

/// The raw values of Apple's enumerations and option sets, and this module's name for each raw value.
struct EnumFacts {
    let type: String
    let name: String
    let rawValue: UInt64

    /// Returns the facts of both tables. Members that mean "nothing" are imported as an empty option set, without a
    /// name.
    static func all() throws -> [EnumFacts] {
        let listed = try Facts.rows("metal-enums.tsv").compactMap { row -> EnumFacts? in
            let type = errorTypes.contains(row[0]) ? row[0] + ".Code" : row[0]
            guard let name = swiftName(row[1], of: row[0]), !aliases.contains("\(type).\(name)") else { return nil }
            return EnumFacts(type: type, name: name, rawValue: UInt64(row[2])!)
        }
        let further = try Facts.rows("metal-api-extra.tsv").compactMap { row -> EnumFacts? in
            guard row[1].hasPrefix("case ") else { return nil }
            let parts = row[1].dropFirst(5).components(separatedBy: " = ")
            return EnumFacts(type: row[0], name: parts[0], rawValue: UInt64(parts[1])!)
        }
        return listed + further
    }

    /// Second names of a value, which a description cannot show; `testSecondNames` tests them.
    static let aliases: Set<String> = [
        "MTLCommandBufferError.Code.blacklisted",
        "MTLResourceOptions.optionCPUCacheModeDefault", "MTLResourceOptions.optionCPUCacheModeWriteCombined",
        "MTLResourceOptions.storageModeShared", "MTLResourceOptions.hazardTrackingModeDefault",
    ]

    private static let errorTypes: Set<String> = [
        "MTLLibraryError", "MTLCommandBufferError", "MTLBinaryArchiveError", "MTLCaptureError",
    ]

    /// Returns Swift's name of a case: without the type's name, starting with a lower-case letter. `renamed` has the
    /// names that Apple's notes for Swift change.
    private static func swiftName(_ name: String, of type: String) -> String? {
        let prefixes = [String(type.dropFirst(3)), "Resource", ""]
        let prefix = prefixes.first { name.hasPrefix($0) }!
        let remainder = String(name.dropFirst(prefix.count))
        if optionSets.contains(type) && remainder == "None" { return nil }
        if let known = renamed[remainder] { return known }
        if remainder.first?.isNumber == true { return lastWord(of: type).lowercased() + remainder }
        let capitals = remainder.prefix { $0.isUppercase }.count
        let lowercase =
            capitals == remainder.count || remainder.dropFirst(capitals).first?.isNumber == true || capitals == 1
            ? capitals : capitals - 1
        return remainder.prefix(lowercase).lowercased() + remainder.dropFirst(lowercase)
    }

    /// A name cannot start with a digit. If it would, the importer keeps the last word of the type's name.
    private static func lastWord(of type: String) -> Substring { type[type.lastIndex { $0.isUppercase }!...] }

    private static let optionSets: Set<String> = ["MTLCommandBufferErrorOption", "MTLPipelineOption"]

    private static let renamed: [String: String] = [
        "RGBA8Unorm_sRGB": "rgba8Unorm_srgb", "RGB10A2Unorm": "rgb10a2Unorm", "RG11B10Float": "rg11b10Float",
        "RGB9E5Float": "rgb9e5Float", "GPUTraceDocument": "gpuTraceDocument",
        "OptionCPUCacheModeDefault": "optionCPUCacheModeDefault",
        "OptionCPUCacheModeWriteCombined": "optionCPUCacheModeWriteCombined",
    ].merging(
        ["UInt", "UShort", "UChar", "ULong", "BFloat"].flatMap { type in
            ["", "2", "3", "4"].map { (type + $0, type.lowercased() + $0) }
        }
    ) { first, _ in first }

    /// Returns this module's name for the fact's raw value: "" if it has none, nil if the type is in no table.
    static func name(of fact: EnumFacts) -> String? {
        if let members = options[fact.type] { return members.first { $0.value == fact.rawValue }?.key ?? "" }
        return enumerations[fact.type].map { $0(fact.rawValue) }
    }

    private static func describe<Enumeration: RawRepresentable>(_: Enumeration.Type) -> (UInt64) -> String
    where Enumeration.RawValue: FixedWidthInteger {
        { raw in Enumeration(rawValue: .init(truncatingIfNeeded: raw)).map { "\($0)" } ?? "" }
    }

    private static let enumerations: [String: (UInt64) -> String] = [
        "MTLDataType": describe(MTLDataType.self),
        "MTLBinaryArchiveError.Code": describe(MTLBinaryArchiveError.Code.self),
        "MTLCaptureError.Code": describe(MTLCaptureError.Code.self),
        "MTLCaptureDestination": describe(MTLCaptureDestination.self),
        "MTLCommandBufferStatus": describe(MTLCommandBufferStatus.self),
        "MTLCommandBufferError.Code": describe(MTLCommandBufferError.Code.self),
        "MTLDispatchType": describe(MTLDispatchType.self), "MTLGPUFamily": describe(MTLGPUFamily.self),
        "MTLArgumentBuffersTier": describe(MTLArgumentBuffersTier.self), "MTLHeapType": describe(MTLHeapType.self),
        "MTLFunctionType": describe(MTLFunctionType.self), "MTLLanguageVersion": describe(MTLLanguageVersion.self),
        "MTLLibraryType": describe(MTLLibraryType.self),
        "MTLLibraryOptimizationLevel": describe(MTLLibraryOptimizationLevel.self),
        "MTLLibraryError.Code": describe(MTLLibraryError.Code.self),
        "MTLPurgeableState": describe(MTLPurgeableState.self),
        "MTLCPUCacheMode": describe(MTLCPUCacheMode.self), "MTLStorageMode": describe(MTLStorageMode.self),
        "MTLHazardTrackingMode": describe(MTLHazardTrackingMode.self), "MTLBindingType": describe(MTLBindingType.self),
        "MTLArgumentType": describe(MTLArgumentType.self), "MTLBindingAccess": describe(MTLBindingAccess.self),
        "MTLCommandEncoderErrorState": describe(MTLCommandEncoderErrorState.self),
        "MTLCompileSymbolVisibility": describe(MTLCompileSymbolVisibility.self),
        "MTLMathMode": describe(MTLMathMode.self),
        "MTLMathFloatingPointFunctions": describe(MTLMathFloatingPointFunctions.self),
        "MTLPatchType": describe(MTLPatchType.self), "MTLMutability": describe(MTLMutability.self),
        "MTLShaderValidation": describe(MTLShaderValidation.self), "MTLLogLevel": describe(MTLLogLevel.self),
        "MTLLogStateError": describe(MTLLogStateError.self), "MTLDeviceLocation": describe(MTLDeviceLocation.self),
        "MTLDynamicLibraryError.Code": describe(MTLDynamicLibraryError.Code.self),
        "MTLFeatureSet": describe(MTLFeatureSet.self),
        "MTLPixelFormat": describe(MTLPixelFormat.self),
        "MTLTextureType": describe(MTLTextureType.self),
        "MTLTextureCompressionType": describe(MTLTextureCompressionType.self),
        "MTLTextureSwizzle": describe(MTLTextureSwizzle.self),
        "MTLSamplerMinMagFilter": describe(MTLSamplerMinMagFilter.self),
        "MTLSamplerMipFilter": describe(MTLSamplerMipFilter.self),
        "MTLSamplerAddressMode": describe(MTLSamplerAddressMode.self),
        "MTLSamplerBorderColor": describe(MTLSamplerBorderColor.self),
        "MTLCompareFunction": describe(MTLCompareFunction.self),
        "MTLCounterSamplingPoint": describe(MTLCounterSamplingPoint.self),
        "MTLLoadAction": describe(MTLLoadAction.self),
        "MTLStoreAction": describe(MTLStoreAction.self),
        "MTLPrimitiveType": describe(MTLPrimitiveType.self),
        "MTLReadWriteTextureTier": describe(MTLReadWriteTextureTier.self),
        "MTLBlendFactor": describe(MTLBlendFactor.self),
        "MTLBlendOperation": describe(MTLBlendOperation.self),
        "MTLCullMode": describe(MTLCullMode.self),
        "MTLDepthClipMode": describe(MTLDepthClipMode.self),
        "MTLIndexType": describe(MTLIndexType.self),
        "MTLMultisampleDepthResolveFilter": describe(MTLMultisampleDepthResolveFilter.self),
        "MTLMultisampleStencilResolveFilter": describe(MTLMultisampleStencilResolveFilter.self),
        "MTLPrimitiveTopologyClass": describe(MTLPrimitiveTopologyClass.self),
        "MTLStencilOperation": describe(MTLStencilOperation.self),
        "MTLTessellationPartitionMode": describe(MTLTessellationPartitionMode.self),
        "MTLTessellationFactorFormat": describe(MTLTessellationFactorFormat.self),
        "MTLTessellationFactorStepFunction": describe(MTLTessellationFactorStepFunction.self),
        "MTLTessellationControlPointIndexType": describe(MTLTessellationControlPointIndexType.self),
        "MTLTriangleFillMode": describe(MTLTriangleFillMode.self),
        "MTLVisibilityResultMode": describe(MTLVisibilityResultMode.self),
        "MTLVisibilityResultType": describe(MTLVisibilityResultType.self),
        "MTLWinding": describe(MTLWinding.self),
        "MTLVertexFormat": describe(MTLVertexFormat.self),
        "MTLVertexStepFunction": describe(MTLVertexStepFunction.self),
        "MTLAttributeFormat": describe(MTLAttributeFormat.self),
        "MTLStepFunction": describe(MTLStepFunction.self),
        "MTLAccelerationStructureInstanceDescriptorType": describe(MTLAccelerationStructureInstanceDescriptorType.self),
        "MTLSparseTextureMappingMode": describe(MTLSparseTextureMappingMode.self),
        "MTLSparseTextureRegionAlignmentMode": describe(MTLSparseTextureRegionAlignmentMode.self),
        "MTLSparsePageSize": describe(MTLSparsePageSize.self),
        "MTLFunctionLogType": describe(MTLFunctionLogType.self),
        "MTLCounterSampleBufferError.Code": describe(MTLCounterSampleBufferError.Code.self),
        "MTLTensorDataType": describe(MTLTensorDataType.self),
        "MTLTensorError.Code": describe(MTLTensorError.Code.self),
        "MTL4CommandQueueError.Code": describe(MTL4CommandQueueError.Code.self),
    ]

    private static let options: [String: [String: UInt64]] = [
        "MTLCommandBufferErrorOption": [
            "encoderExecutionStatus": UInt64(MTLCommandBufferErrorOption.encoderExecutionStatus.rawValue)
        ],
        "MTLResourceUsage": [
            "read": UInt64(MTLResourceUsage.read.rawValue), "write": UInt64(MTLResourceUsage.write.rawValue),
            "sample": UInt64(MTLResourceUsage.sample.rawValue),
        ],
        "MTLBarrierScope": [
            "buffers": UInt64(MTLBarrierScope.buffers.rawValue), "textures": UInt64(MTLBarrierScope.textures.rawValue),
            "renderTargets": UInt64(MTLBarrierScope.renderTargets.rawValue),
        ],
        "MTLPipelineOption": [
            "argumentInfo": UInt64(MTLPipelineOption.argumentInfo.rawValue),
            "bufferTypeInfo": UInt64(MTLPipelineOption.bufferTypeInfo.rawValue),
            "failOnBinaryArchiveMiss": UInt64(MTLPipelineOption.failOnBinaryArchiveMiss.rawValue),
        ],
        "MTLResourceOptions": [
            "cpuCacheModeDefaultCache": UInt64(MTLResourceOptions.cpuCacheModeDefaultCache.rawValue),
            "cpuCacheModeWriteCombined": UInt64(MTLResourceOptions.cpuCacheModeWriteCombined.rawValue),
            "storageModeManaged": UInt64(MTLResourceOptions.storageModeManaged.rawValue),
            "storageModePrivate": UInt64(MTLResourceOptions.storageModePrivate.rawValue),
            "storageModeMemoryless": UInt64(MTLResourceOptions.storageModeMemoryless.rawValue),
            "hazardTrackingModeUntracked": UInt64(MTLResourceOptions.hazardTrackingModeUntracked.rawValue),
            "hazardTrackingModeTracked": UInt64(MTLResourceOptions.hazardTrackingModeTracked.rawValue),
        ],
    ]
}
