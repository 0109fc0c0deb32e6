import MetalRuntime

/// NVIDIA GPUs. The driver is loaded by the first use of `gpus`.
extension SoftwareDevice {
    static let gpus: [SoftwareDevice] = (0..<mrt_gpu_count(nil)).map { SoftwareDevice(gpu: UInt32($0)) }

    /// Returns the GPU that a name such as `nvidia:1` selects. `nvidia` selects the GPU of this process's rank, or the
    /// first one without ranks.
    static func gpu(named setting: String) throws -> SoftwareDevice {
        let parts = setting.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.first == "nvidia", parts.count <= 2, let number = parts.count == 1 ? localRank() : Int(parts[1]),
            number >= 0
        else {
            throw SelectionError(
                "ORCHARD_METAL_DEVICE: expected software, nvidia or nvidia:<number> (got \"\(setting)\")")
        }
        guard number < gpus.count else {
            var message: UnsafeMutablePointer<CChar>?
            let count = mrt_gpu_count(&message)
            let reason =
                takeMessage(message)
                ?? "there are \(count) usable GPUs, numbered from 0, and this process would take number \(number)"
            throw SelectionError("ORCHARD_METAL_DEVICE=\(setting): \(reason)")
        }
        return gpus[number]
    }

    /// The rank of this process among the processes that an MPI launcher started on this machine, read from the
    /// environment variables of Open MPI, MPICH, MVAPICH, Cray and Slurm. Returns 0 without a launcher, and if the
    /// launcher has already chosen the GPU, so that the process sees only one.
    private static func localRank() -> Int {
        let variables = [
            "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID",
            "SLURM_LOCALID",
        ]
        let hasOne = getenv("CUDA_VISIBLE_DEVICES") != nil && gpus.count == 1
        return hasOne ? 0 : variables.lazy.compactMap { getenv($0).flatMap { Int(String(cString: $0)) } }.first ?? 0
    }

    struct SelectionError: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    /// Issues the work that this thread has recorded, and returns a mark of its end. Returns nil on the software
    /// device, which has no unfinished work.
    func mark() -> Result<OpaquePointer?, CommandFailure> {
        guard let gpu else { return .success(nil) }
        var message: UnsafeMutablePointer<CChar>?
        var mark: OpaquePointer?
        let result = mrt_gpu_mark_create(gpu, &mark, &message)
        let text = takeMessage(message)
        return result == MRT_RESULT_OK ? .success(mark) : .failure(CommandFailure(result, text))
    }

    /// Waits for a mark of this thread, for at most that many microseconds. Returns how the work ended, or nil if it is
    /// still running.
    func ended(_ mark: OpaquePointer, within microseconds: UInt32) -> Result<Void, CommandFailure>? {
        guard let gpu else { return .success(()) }
        var message: UnsafeMutablePointer<CChar>?
        var result = MRT_RESULT_OK
        guard mrt_gpu_mark_reached(gpu, mark, microseconds, &result, &message) else { return nil }
        let text = takeMessage(message)
        return result == MRT_RESULT_OK ? .success(()) : .failure(CommandFailure(result, text))
    }

    /// Waits for the work that this thread has issued to the GPU.
    func finish() -> CommandFailure? {
        guard let gpu else { return nil }
        var message: UnsafeMutablePointer<CChar>?
        let result = mrt_gpu_finish(gpu, &message)
        let text = takeMessage(message)
        return result == MRT_RESULT_OK ? nil : CommandFailure(result, text)
    }

    /// Copies bytes between buffers, or from a buffer to the host.
    func copy(to destination: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) -> CommandFailure? {
        guard let gpu else {
            destination.copyMemory(from: source, byteCount: count)
            mrt_memory_mark_copied(destination, source, count)
            return nil
        }
        var message: UnsafeMutablePointer<CChar>?
        let result = mrt_gpu_copy(gpu, destination, source, count, &message)
        let text = takeMessage(message)
        return result == MRT_RESULT_OK ? nil : CommandFailure(result, text)
    }

    func fill(_ start: UnsafeMutableRawPointer, value: UInt8, count: Int) -> CommandFailure? {
        guard let gpu else {
            start.initializeMemory(as: UInt8.self, repeating: value, count: count)
            mrt_memory_mark_written(start, count)
            return nil
        }
        var message: UnsafeMutablePointer<CChar>?
        let result = mrt_gpu_fill(gpu, start, value, count, &message)
        let text = takeMessage(message)
        return result == MRT_RESULT_OK ? nil : CommandFailure(result, text)
    }
}
