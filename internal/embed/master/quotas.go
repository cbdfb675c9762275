package master

import (
	"context"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Quotas are kept and shown in hbase:quota; region servers enforce throttles and
// what ReckonSpace finds of space quotas. Without Config.Quotas they are refused as by
// an HBase without hbase.quota.enabled.
func (m *Master) addQuotas(s *rpcserver.Service) {
	answer(m, s, "SetQuota", m.setQuota)
	answer(m, s, "GetQuotaStates", m.getQuotaStates)
	answer(m, s, "GetSpaceQuotaRegionSizes", m.getSpaceQuotaRegionSizes)
	answer(m, s, "SwitchExceedThrottleQuota", m.switchExceedThrottle)
}

func (m *Master) quotasOn() error {
	if !m.cfg.Quotas {
		return refuse(wire.ClassDoNotRetryIO, "java.lang.UnsupportedOperationException: quota support disabled")
	}
	return nil
}

const exceedRow = "exceedThrottleQuota"

// quotaCell names the cell of hbase:quota a request is about.
func quotaCell(q *pb.SetQuotaRequest) (row, qualifier string, err error) {
	table := ""
	if q.TableName != nil {
		table = meta.TableFromProto(q.TableName).String()
	}
	switch {
	case q.UserName != nil && table != "":
		return "u." + q.GetUserName(), "s." + table, nil
	case q.UserName != nil && q.Namespace != nil:
		return "u." + q.GetUserName(), "s." + q.GetNamespace() + ":", nil
	case q.UserName != nil:
		return "u." + q.GetUserName(), "s", nil
	case table != "":
		return "t." + table, "s", nil
	case q.Namespace != nil:
		return "n." + q.GetNamespace(), "s", nil
	case q.RegionServer != nil:
		return "r." + q.GetRegionServer(), "s", nil
	}
	return "", "", refuse(wire.ClassDoNotRetryIO, "java.lang.UnsupportedOperationException: a user, a table, a namespace or region server must be specified")
}

func (m *Master) setQuota(_ context.Context, q *pb.SetQuotaRequest) (*pb.SetQuotaResponse, error) {
	if err := m.quotasOn(); err != nil {
		return nil, err
	}
	row, qualifier, err := quotaCell(q)
	if err != nil {
		return nil, err
	}
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		quotas := &pb.Quotas{}
		if old, ok := strings.CutPrefix(string(tx.Quota(row, qualifier)), meta.ProtoMagic); ok {
			if err := quotas.UnmarshalVT([]byte(old)); err != nil {
				return err
			}
		}
		if err := mergeQuota(quotas, q); err != nil {
			return err
		}
		if quotas.Throttle == nil && quotas.Space == nil && !quotas.GetBypassGlobals() {
			tx.SetQuota(row, qualifier, nil)
			return nil
		}
		b, err := quotas.MarshalVT()
		if err != nil {
			return err
		}
		tx.SetQuota(row, qualifier, append([]byte(meta.ProtoMagic), b...))
		return nil
	})
	m.wakeSpace()
	return &pb.SetQuotaResponse{}, err
}

// mergeQuota applies a request to the settings of its target, as HBase's
// GlobalQuotaSettingsImpl does.
func mergeQuota(to *pb.Quotas, q *pb.SetQuotaRequest) error {
	switch {
	case q.GetRemoveAll():
		*to = pb.Quotas{}
		return nil
	case q.BypassGlobals != nil:
		to.BypassGlobals = q.BypassGlobals
		return nil
	case q.SpaceLimit != nil:
		space := q.SpaceLimit.GetQuota()
		if space.GetRemove() {
			to.Space = nil
			return nil
		}
		if space.GetSoftLimit() == 0 || space.ViolationPolicy == nil {
			return refuse(wire.ClassDoNotRetryIO, "Cannot handle SpaceQuota without a soft limit and a violation policy")
		}
		to.Space = space
		return nil
	case q.Throttle == nil:
		return refuse(wire.ClassDoNotRetryIO, "java.lang.IllegalStateException: Unhandled SetRequestRequest state")
	}
	t, timed := q.Throttle, q.Throttle.TimedQuota
	if timed == nil && t.Type == nil {
		to.Throttle = nil
		return nil
	}
	if timed != nil && timed.GetSoftLimit() == 0 {
		return refuse(wire.ClassDoNotRetryIO, "The throttle limit must be greater then 0, got %d", timed.GetSoftLimit())
	}
	if to.Throttle == nil {
		to.Throttle = &pb.Throttle{}
	}
	field := throttleField(to.Throttle, t.GetType())
	if field == nil {
		return refuse(wire.ClassDoNotRetryIO, "java.lang.IllegalArgumentException: Invalid throttle type: %s", t.GetType())
	}
	if *field = timed; to.Throttle.SizeVT() == 0 {
		to.Throttle = nil
	}
	return nil
}

func throttleField(t *pb.Throttle, of pb.ThrottleType) **pb.TimedQuota {
	switch of {
	case pb.ThrottleType_REQUEST_NUMBER:
		return &t.ReqNum
	case pb.ThrottleType_REQUEST_SIZE:
		return &t.ReqSize
	case pb.ThrottleType_WRITE_NUMBER:
		return &t.WriteNum
	case pb.ThrottleType_WRITE_SIZE:
		return &t.WriteSize
	case pb.ThrottleType_READ_NUMBER:
		return &t.ReadNum
	case pb.ThrottleType_READ_SIZE:
		return &t.ReadSize
	case pb.ThrottleType_REQUEST_CAPACITY_UNIT:
		return &t.ReqCapacityUnit
	case pb.ThrottleType_WRITE_CAPACITY_UNIT:
		return &t.WriteCapacityUnit
	case pb.ThrottleType_READ_CAPACITY_UNIT:
		return &t.ReadCapacityUnit
	case pb.ThrottleType_ATOMIC_READ_SIZE:
		return &t.AtomicReadSize
	case pb.ThrottleType_ATOMIC_REQUEST_NUMBER:
		return &t.AtomicReqNum
	case pb.ThrottleType_ATOMIC_WRITE_SIZE:
		return &t.AtomicWriteSize
	case pb.ThrottleType_REQUEST_HANDLER_USAGE_MS:
		return &t.ReqHandlerUsageMs
	}
	return nil
}

// switchExceedThrottle checks what HBase checks: region servers must have
// throttles of reads and writes, all per second.
func (m *Master) switchExceedThrottle(_ context.Context, q *pb.SwitchExceedThrottleQuotaRequest) (*pb.SwitchExceedThrottleQuotaResponse, error) {
	on, was := q.GetExceedThrottleQuotaEnabled(), false
	if !m.cfg.Quotas {
		return &pb.SwitchExceedThrottleQuotaResponse{PreviousExceedThrottleQuotaEnabled: &was}, nil
	}
	err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		was = string(tx.Quota(exceedRow, "s")) == "\xFF"
		if on && !was {
			if err := exceedAllowed(tx); err != nil {
				return err
			}
		}
		value := []byte{0}
		if on {
			value[0] = 0xFF
		}
		tx.SetQuota(exceedRow, "s", value)
		return nil
	})
	return &pb.SwitchExceedThrottleQuotaResponse{PreviousExceedThrottleQuotaEnabled: &was}, err
}

func exceedAllowed(tx *catalog.Tx) error {
	quotas := &pb.Quotas{}
	if v, ok := strings.CutPrefix(string(tx.Quota("r.all", "s")), meta.ProtoMagic); ok {
		if err := quotas.UnmarshalVT([]byte(v)); err != nil {
			return err
		}
	}
	t := quotas.GetThrottle()
	if t == nil {
		return refuse(wire.ClassDoNotRetryIO, "Please set region server quota before enable exceed throttle quota")
	}
	any := t.ReqNum != nil || t.ReqSize != nil || t.ReqCapacityUnit != nil
	if !any && t.ReadNum == nil && t.ReadSize == nil && t.ReadCapacityUnit == nil {
		return refuse(wire.ClassDoNotRetryIO, "Please set at least one read region server quota before enable exceed throttle quota")
	}
	if !any && t.WriteNum == nil && t.WriteSize == nil && t.WriteCapacityUnit == nil {
		return refuse(wire.ClassDoNotRetryIO, "Please set at least one write region server quota before enable exceed throttle quota")
	}
	for of := range pb.ThrottleType_name {
		if f := throttleField(t, pb.ThrottleType(of)); f != nil && *f != nil && (*f).GetTimeUnit() != pb.TimeUnit_SECONDS {
			return refuse(wire.ClassDoNotRetryIO, "All region server quota must be in seconds time unit if enable exceed throttle quota")
		}
	}
	return nil
}
