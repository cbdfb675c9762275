package master

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// get adds a method that reads a switch, set one that changes it.
func get[M any, P interface {
	*M
	wire.Unmarshaler
}, R wire.Marshaler](m *Master, s *rpcserver.Service, name, setting string, wrap func(*bool) R) {
	answer(m, s, name, func(context.Context, P) (R, error) { return wrap(new(m.isOn(setting))), nil })
}

func set[M any, P interface {
	*M
	wire.Unmarshaler
}, R wire.Marshaler](m *Master, s *rpcserver.Service, name, setting string, on func(P) bool, wrap func(*bool) R) {
	answer(m, s, name, func(_ context.Context, q P) (R, error) {
		before, err := m.setOn(setting, on(q))
		if err != nil {
			var none R
			return none, err
		}
		return wrap(&before), nil
	})
}

func (m *Master) addSwitches(s *rpcserver.Service) {
	get[pb.IsBalancerEnabledRequest](m, s, "IsBalancerEnabled", settingBalancerOff, func(on *bool) *pb.IsBalancerEnabledResponse { return &pb.IsBalancerEnabledResponse{Enabled: on} })
	set(m, s, "SetBalancerRunning", settingBalancerOff, (*pb.SetBalancerRunningRequest).GetOn, func(b *bool) *pb.SetBalancerRunningResponse {
		return &pb.SetBalancerRunningResponse{PrevBalanceValue: b}
	})
	get[pb.IsNormalizerEnabledRequest](m, s, "IsNormalizerEnabled", settingNormalizerOff, func(on *bool) *pb.IsNormalizerEnabledResponse {
		return &pb.IsNormalizerEnabledResponse{Enabled: on}
	})
	set(m, s, "SetNormalizerRunning", settingNormalizerOff, (*pb.SetNormalizerRunningRequest).GetOn, func(b *bool) *pb.SetNormalizerRunningResponse {
		return &pb.SetNormalizerRunningResponse{PrevNormalizerValue: b}
	})
	get[pb.IsCatalogJanitorEnabledRequest](m, s, "IsCatalogJanitorEnabled", settingJanitorOff, func(on *bool) *pb.IsCatalogJanitorEnabledResponse {
		return &pb.IsCatalogJanitorEnabledResponse{Value: on}
	})
	set(m, s, "EnableCatalogJanitor", settingJanitorOff, (*pb.EnableCatalogJanitorRequest).GetEnable, func(b *bool) *pb.EnableCatalogJanitorResponse {
		return &pb.EnableCatalogJanitorResponse{PrevValue: b}
	})
	get[pb.IsCleanerChoreEnabledRequest](m, s, "IsCleanerChoreEnabled", settingCleanerOff, func(on *bool) *pb.IsCleanerChoreEnabledResponse {
		return &pb.IsCleanerChoreEnabledResponse{Value: on}
	})
	set(m, s, "SetCleanerChoreRunning", settingCleanerOff, (*pb.SetCleanerChoreRunningRequest).GetOn, func(b *bool) *pb.SetCleanerChoreRunningResponse {
		return &pb.SetCleanerChoreRunningResponse{PrevValue: b}
	})
	get[pb.IsSnapshotCleanupEnabledRequest](m, s, "IsSnapshotCleanupEnabled", settingSnapshotCleanupOff, func(on *bool) *pb.IsSnapshotCleanupEnabledResponse {
		return &pb.IsSnapshotCleanupEnabledResponse{Enabled: on}
	})
	set(m, s, "SwitchSnapshotCleanup", settingSnapshotCleanupOff, (*pb.SetSnapshotCleanupRequest).GetEnabled, func(b *bool) *pb.SetSnapshotCleanupResponse {
		return &pb.SetSnapshotCleanupResponse{PrevSnapshotCleanup: b}
	})
	get[pb.IsRpcThrottleEnabledRequest](m, s, "IsRpcThrottleEnabled", settingThrottleOff, func(on *bool) *pb.IsRpcThrottleEnabledResponse {
		return &pb.IsRpcThrottleEnabledResponse{RpcThrottleEnabled: on}
	})
	set(m, s, "SwitchRpcThrottle", settingThrottleOff, (*pb.SwitchRpcThrottleRequest).GetRpcThrottleEnabled, func(b *bool) *pb.SwitchRpcThrottleResponse {
		return &pb.SwitchRpcThrottleResponse{PreviousRpcThrottleEnabled: b}
	})
	get[pb.IsReplicationPeerModificationEnabledRequest](m, s, "IsReplicationPeerModificationEnabled", settingPeerOff, func(on *bool) *pb.IsReplicationPeerModificationEnabledResponse {
		return &pb.IsReplicationPeerModificationEnabledResponse{Enabled: on}
	})
	set(m, s, "ReplicationPeerModificationSwitch", settingPeerOff, (*pb.ReplicationPeerModificationSwitchRequest).GetOn, func(b *bool) *pb.ReplicationPeerModificationSwitchResponse {
		return &pb.ReplicationPeerModificationSwitchResponse{PreviousValue: b}
	})
	splitOrMerge := func(t pb.MasterSwitchType) string {
		if t == pb.MasterSwitchType_MERGE {
			return settingMergeOff
		}
		return settingSplitOff
	}
	answer(m, s, "IsSplitOrMergeEnabled", func(_ context.Context, q *pb.IsSplitOrMergeEnabledRequest) (*pb.IsSplitOrMergeEnabledResponse, error) {
		return &pb.IsSplitOrMergeEnabledResponse{Enabled: new(m.isOn(splitOrMerge(q.GetSwitchType())))}, nil
	})
	answer(m, s, "SetSplitOrMergeEnabled", func(_ context.Context, q *pb.SetSplitOrMergeEnabledRequest) (*pb.SetSplitOrMergeEnabledResponse, error) {
		r := &pb.SetSplitOrMergeEnabledResponse{}
		for _, t := range q.GetSwitchTypes() {
			before, err := m.setOn(splitOrMerge(t), q.GetEnabled())
			if err != nil {
				return nil, err
			}
			r.PrevValue = append(r.PrevValue, before)
		}
		return r, nil
	})
	answer(m, s, "RunCatalogScan", func(context.Context, *pb.RunCatalogScanRequest) (*pb.RunCatalogScanResponse, error) {
		n, err := m.clean()
		return &pb.RunCatalogScanResponse{ScanResult: new(int32(n))}, err
	})
	answer(m, s, "RunCleanerChore", func(context.Context, *pb.RunCleanerChoreRequest) (*pb.RunCleanerChoreResponse, error) {
		return &pb.RunCleanerChoreResponse{CleanerChoreRan: new(m.isOn(settingCleanerOff))}, nil
	})
	answer(m, s, "Normalize", func(context.Context, *pb.NormalizeRequest) (*pb.NormalizeResponse, error) {
		return &pb.NormalizeResponse{NormalizerRan: new(m.isOn(settingNormalizerOff))}, nil
	})
}
