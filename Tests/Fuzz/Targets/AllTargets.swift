extension FuzzTarget {
    /// Everything that is fuzzed.
    static let all =
        BeaconTargets.all + LocationTargets.all + SoundTargets.all + ConfigurationTargets.all
        + AnswerTargets.all + ControlTargets.all + IntakeTargets.all + IngestTargets.all
        + JSONTargets.all
}
