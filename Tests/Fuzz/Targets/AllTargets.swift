import FuzzSupport

extension FuzzTarget {
    /// Every parser of the gateway that is fuzzed.
    static let gateway =
        BeaconTargets.all + LocationTargets.all + SoundTargets.all + ConfigurationTargets.all
        + AnswerTargets.all + ControlTargets.all + IntakeTargets.all + JSONTargets.all
}
