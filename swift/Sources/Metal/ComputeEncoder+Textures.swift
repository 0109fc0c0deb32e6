import MetalRuntime

/// Textures and samplers of a compute encoder.
extension SoftwareComputeEncoder {
    func setTexture(_ texture: (any MTLTexture)?, index: Int) {
        let selector = "setTexture:atIndex:"
        guard encodes(selector), isIndex(index, below: Int(MRT_MAX_TEXTURES), "texture", selector) else { return }
        guard let texture else { return textures[index] = nil }
        guard let known = texture as? SoftwareTexture else {
            return misuse(debugName, selector, "the texture is not one of this device (\(SoftwareDevice.shared.name)).")
        }
        textures[index] = known
    }

    func setTextures(_ textures: [(any MTLTexture)?], range: Range<Int>) {
        for (texture, index) in zip(textures, range) { setTexture(texture, index: index) }
    }

    func setSamplerState(_ sampler: (any MTLSamplerState)?, index: Int) {
        let selector = "setSamplerState:atIndex:"
        guard encodes(selector), isIndex(index, below: Int(MRT_MAX_SAMPLERS), "sampler", selector) else { return }
        samplers[index] = sampler as? SoftwareSampler
    }

    func setSamplerState(_ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int) {
        setSamplerState(sampler, index: index)
    }

    func setSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>) {
        for (sampler, index) in zip(samplers, range) { setSamplerState(sampler, index: index) }
    }

    func setSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>
    ) {
        for (position, index) in range.enumerated() {
            setSamplerState(
                samplers[position], lodMinClamp: lodMinClamps[position], lodMaxClamp: lodMaxClamps[position],
                index: index)
        }
    }

    func setStageInRegion(_ region: MTLRegion) {
        refuseStride("setStageInRegion:")
    }

    private func isIndex(_ index: Int, below limit: Int, _ kind: String, _ selector: String) -> Bool {
        (0..<limit).contains(index)
            || refuse(debugName, selector, "index(\(index)) must be < \(limit), the number of \(kind) arguments.")
    }

    /// Returns whether each texture that the kernel uses is bound, and has the right type and components.
    func hasTextures(_ argument: SoftwareBinding, _ pipeline: SoftwarePipeline, _ selector: String) -> Bool {
        let function = "Compute Function(\(pipeline.function.name))"
        return (argument.index..<argument.index + argument.arrayLength).allSatisfy { index in
            guard let texture = textures[index] else {
                return refuse(
                    debugName, selector,
                    "\(function): missing Texture binding at index \(index) for \(argument.name)[0].")
            }
            return fits(texture, argument, function, selector)
        }
    }

    private func fits(
        _ texture: SoftwareTexture, _ argument: SoftwareBinding, _ function: String, _ selector: String
    ) -> Bool {
        let shown = "\(function): the texture at index \(argument.index) for \(argument.name)"
        let wants: MTLTextureUsage =
            argument.access == .readOnly
            ? .shaderRead : argument.access == .writeOnly ? .shaderWrite : [.shaderRead, .shaderWrite]
        let isInteger = ![.float, .half].contains(argument.textureDataType)
        let isSigned = [.int, .short].contains(argument.textureDataType)
        let rules: [(holds: Bool, otherwise: String)] = [
            (texture.textureType == argument.textureType, "is \(texture.textureType), not \(argument.textureType)."),
            (
                !argument.isDepthTexture || texture.pixelFormat.isDepth,
                "has the format \(texture.pixelFormat), which is not one of depths."
            ),
            (
                texture.layout.isInteger == isInteger && (!isInteger || texture.layout.isSigned == isSigned),
                "has the format \(texture.pixelFormat), whose components are not \(argument.textureDataType)."
            ),
            (
                texture.usage.isSuperset(of: wants),
                "was not made with the usage that the kernel has of it: \(wants.names)."
            ),
        ]
        for rule in rules where !rule.holds { return refuse(debugName, selector, "\(shown) \(rule.otherwise)") }
        return true
    }

    /// Returns whether each sampler that the kernel uses is bound; sampling without one would be undefined.
    func hasSamplers(_ argument: SoftwareBinding, _ pipeline: SoftwarePipeline, _ selector: String) -> Bool {
        (argument.index..<argument.index + argument.arrayLength).allSatisfy { index in
            samplers[index] != nil
                || refuse(
                    debugName, selector,
                    "Compute Function(\(pipeline.function.name)): missing Sampler binding at index \(index) for "
                        + "\(argument.name)[0].")
        }
    }
}

extension MTLTextureUsage {
    fileprivate var names: String {
        [(MTLTextureUsage.shaderRead, ".shaderRead"), (.shaderWrite, ".shaderWrite")].filter { contains($0.0) }
            .map(\.1).joined(separator: " and ")
    }
}
