import FuzzSupport

extension FuzzTarget {
    /// All fuzz targets of the gateway.
    static let gateway =
        BeaconTargets.all + LocationTargets.all + AudioTargets.all + TagTargets.all
        + ConfigurationTargets.all
        + AnswerTargets.all + ControlTargets.all + IntakeTargets.all + JSONTargets.all
        + MQTTTargets.all + BrokerTargets.all + ProxyTargets.all + FieldTargets.all
        + RemoteTargets.all + ColumnTargets.all
}
