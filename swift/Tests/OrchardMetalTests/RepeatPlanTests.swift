import Metal
import XCTest

@testable import OrchardMetal

/// The plan compared with a model of memory: batches of random operations run, some fail, some are dropped, and the
/// others run again according to the plan. Then memory is compared with a run in which nothing was dropped.
final class RepeatPlanTests: XCTestCase {
    private static let allocations = 4
    fileprivate static let bytes = 4

    /// An operation of the model writes all of `target`, as a function of `sources` and, if in place, of the target.
    fileprivate struct Step {
        let sources: [Int]
        let target: Int
        let inPlace: Bool
        let salt: Int

        func result(of memory: [[Int]]) -> [Int] {
            (0..<RepeatPlanTests.bytes).map { byte in
                ((inPlace ? sources + [target] : sources).reduce(salt) { $0 &* 31 &+ memory[$1][byte] }) % 65521
            }
        }
    }

    fileprivate struct Entry {
        let steps: [Step]
        let outcome: Outcome
        /// The number of bytes written in the first run, over all of its steps.
        let written: Int
    }

    func testWhatIsRunAgainComputesWhatItWouldHave() throws {
        var random = SplitMix(state: 33)
        var counts = (again: 0, lost: 0)
        for round in 0..<4000 {
            let entries = (0..<random.below(6) + 1).map { _ in Self.entry(&random) }
            let verdicts = try plan(entries)
            counts.again += verdicts.filter { $0 == .again }.count
            counts.lost += verdicts.count { if case .lost = $0 { true } else { false } }
            check(entries, verdicts, "round \(round)")
        }
        XCTAssertGreaterThan(counts.again, 1000)
        XCTAssertGreaterThan(counts.lost, 500)
    }

    func testWhatNeverRanIsRunAgainWhateverItDoes() throws {
        var random = SplitMix(state: 34)
        for _ in 0..<200 {
            let entries = (0..<5).map { _ in
                Entry(
                    steps: (0..<3).map { _ in Self.step(&random) }, outcome: .dropped(mayHaveRun: false, "ignored"),
                    written: 0)
            }
            XCTAssertEqual(try plan(entries), entries.map { _ in .again })
        }
    }

    // MARK: Parts

    private static func step(_ random: inout SplitMix) -> Step {
        Step(
            sources: (0..<random.below(3)).map { _ in random.below(allocations) }, target: random.below(allocations),
            inPlace: random.below(3) == 0, salt: random.below(1000) + 1)
    }

    private static func entry(_ random: inout SplitMix) -> Entry {
        let steps = (0..<random.below(3) + 1).map { _ in step(&random) }
        let all = steps.count * bytes, some = random.below(all + 1)
        switch random.below(5) {
        case 0: return Entry(steps: steps, outcome: .completed, written: all)
        case 1: return Entry(steps: steps, outcome: .failed("page fault"), written: some)
        case 2: return Entry(steps: steps, outcome: .dropped(mayHaveRun: false, "ignored"), written: 0)
        default: return Entry(steps: steps, outcome: .dropped(mayHaveRun: true, "discarded"), written: some)
        }
    }

    /// Returns the plan for the model's batches, as operations on buffers.
    private func plan(_ entries: [Entry]) throws -> [RepeatPlan.Verdict] {
        let device = try XCTUnwrap(MTLCopyAllDevices().first)
        let memory = try (0..<Self.allocations).map { _ in
            Allocation(
                try XCTUnwrap(device.makeBuffer(length: 16, options: .storageModeShared)), bytes: 16, storage: .shared)
        }
        let batches = entries.enumerated().map { index, entry in
            let ticket = UInt64(index + 1)
            let operations = entry.steps.map { step in
                let uses =
                    step.sources.map { Use(allocation: memory[$0], range: 0..<Self.bytes, writes: false) } + [
                        Use(
                            allocation: memory[step.target], range: 0..<Self.bytes, writes: true, updates: step.inPlace)
                    ]
                memory[step.target].lastWrite = ticket
                return Operation(uses: uses, encode: .compute { _ in }, work: 1, groups: [])
            }
            return RepeatPlan.Entry(batch: Batch(ticket: ticket, operations: operations), outcome: entry.outcome)
        }
        return RepeatPlan.verdicts(batches) { _ in false }
    }

    private func check(_ entries: [Entry], _ verdicts: [RepeatPlan.Verdict], _ round: String) {
        let fresh = (0..<Self.allocations).map { number in (0..<Self.bytes).map { 100 * number + $0 } }
        var ideal = fresh, real = fresh
        // The last writer's result is known to be missing there: any content is allowed.
        var missing = Set<Int>()
        for (entry, verdict) in zip(entries, verdicts) {
            let isRun = verdict == .again || (verdict == .stands && entry.outcome.isCompleted)
            for step in entry.steps {
                let reads = step.inPlace ? step.sources + [step.target] : step.sources
                let isRight = isRun && missing.isDisjoint(with: reads)
                if isRight { missing.remove(step.target) } else { missing.insert(step.target) }
                if isRun { ideal[step.target] = step.result(of: ideal) }
            }
        }
        runOnce(entries, &real)
        for (entry, verdict) in zip(entries, verdicts) where verdict == .again {
            for step in entry.steps { real[step.target] = step.result(of: real) }
        }
        for allocation in 0..<Self.allocations where !missing.contains(allocation) {
            XCTAssertEqual(real[allocation], ideal[allocation], "\(round), allocation \(allocation): \(verdicts)")
        }
    }

    /// Simulates the run in which some batches were dropped. A batch that shares bytes with an earlier dropped one did
    /// not begin before that one ended, and was dropped with it.
    private func runOnce(_ entries: [Entry], _ memory: inout [[Int]]) {
        var held: [Step] = []
        for entry in entries {
            let waits = entry.outcome.isDropped && entry.steps.contains { step in held.contains { $0.conflicts(step) } }
            if !waits {
                for (index, step) in entry.steps.enumerated() {
                    let result = step.result(of: memory)
                    for byte in 0..<max(0, min(Self.bytes, entry.written - index * Self.bytes)) {
                        memory[step.target][byte] = result[byte]
                    }
                }
            }
            if entry.outcome.isDropped { held += entry.steps }
        }
    }
}

extension RepeatPlanTests.Step {
    fileprivate func conflicts(_ other: Self) -> Bool {
        target == other.target || sources.contains(other.target) || other.sources.contains(target)
    }
}

extension Outcome {
    fileprivate var isCompleted: Bool {
        if case .completed = self { return true }
        return false
    }
}

extension SplitMix {
    fileprivate mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
