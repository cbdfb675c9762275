package admin

import (
	"context"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// BalanceOptions are how the balancer is to be run.
type BalanceOptions struct {
	// DryRun plans and moves nothing. HBase 2.5 and later (HBASE-26147); an
	// older master would move, so it is not asked.
	DryRun bool
	// IgnoreTransitions runs it although regions are in transition.
	IgnoreTransitions bool
}

// BalanceResult is what a run of the balancer did.
type BalanceResult struct {
	// Ran is false while the balancer is switched off, the master is starting or
	// regions are in transition.
	Ran bool
	// Planned and Done count moves; HBase 2.5 and later tell them.
	Planned, Done int
}

// Balance runs the balancer once and says whether it ran: it does not while it
// is switched off or regions are in transition.
func (a *Admin) Balance(ctx context.Context) (bool, error) {
	r, err := a.BalanceWith(ctx, BalanceOptions{})
	return r.Ran, err
}

// BalanceWith is Balance with options.
func (a *Admin) BalanceWith(ctx context.Context, o BalanceOptions) (BalanceResult, error) {
	const op = "balance"
	if o.DryRun {
		if err := a.needs(ctx, op, "a dry run of the balancer", 2, 5); err != nil {
			return BalanceResult{}, err
		}
	}
	req := &pb.BalanceRequest{}
	if o.IgnoreTransitions {
		req.IgnoreRit = new(true)
	}
	if o.DryRun {
		req.DryRun = new(true)
	}
	var resp pb.BalanceResponse
	err := a.slowMaster(ctx, op, "Balance", req, &resp, session.Safe)
	return BalanceResult{Ran: resp.GetBalancerRan(), Planned: int(resp.GetMovesCalculated()), Done: int(resp.GetMovesExecuted())}, fault.Wrap(op, "", err)
}

// NormalizeFilter chooses the tables to normalize; the zero value is all. What
// is set must all hold. HBase before 2.4 normalizes all tables whatever is set,
// so it is refused for them.
type NormalizeFilter struct {
	Tables []string
	// Pattern is a Java regular expression for whole names.
	Pattern   string
	Namespace string
}

// Normalize runs the region normalizer once, which splits and merges regions of
// tables that ask for it (NORMALIZATION_ENABLED) towards an even size, and says
// whether it ran: not while it is switched off or the master is starting.
func (a *Admin) Normalize(ctx context.Context, f NormalizeFilter) (bool, error) {
	const op = "normalize"
	req := &pb.NormalizeRequest{}
	for _, name := range f.Tables {
		t, err := parseTable(op, name)
		if err != nil {
			return false, err
		}
		req.TableNames = append(req.TableNames, t.ToProto())
	}
	if f.Pattern != "" {
		req.Regex = &f.Pattern
	}
	if f.Namespace != "" {
		req.Namespace = &f.Namespace
	}
	if len(f.Tables) > 0 || f.Pattern != "" || f.Namespace != "" {
		if err := a.needs(ctx, op, "normalizing chosen tables", 2, 4); err != nil {
			return false, err
		}
	}
	var resp pb.NormalizeResponse
	err := a.slowMaster(ctx, op, "Normalize", req, &resp, session.Safe)
	return resp.GetNormalizerRan(), fault.Wrap(op, "", err)
}

// SetNormalizer switches the region normalizer and says what it was before.
func (a *Admin) SetNormalizer(ctx context.Context, on bool) (was bool, err error) {
	var resp pb.SetNormalizerRunningResponse
	err = a.master(ctx, "normalizer switch", "SetNormalizerRunning", &pb.SetNormalizerRunningRequest{On: &on}, &resp, session.Safe)
	return resp.GetPrevNormalizerValue(), fault.Wrap("normalizer switch", "", err)
}

// NormalizerEnabled says whether the region normalizer is switched on.
func (a *Admin) NormalizerEnabled(ctx context.Context) (bool, error) {
	var resp pb.IsNormalizerEnabledResponse
	err := a.master(ctx, "normalizer enabled", "IsNormalizerEnabled", &pb.IsNormalizerEnabledRequest{}, &resp, session.Safe)
	return resp.GetEnabled(), fault.Wrap("normalizer enabled", "", err)
}

// RunCatalogJanitor runs the catalog janitor once, which removes regions from
// hbase:meta that were split or merged and are no longer referred to. It gives
// the number of regions cleaned; -1 if it did not run because it is switched
// off or running.
func (a *Admin) RunCatalogJanitor(ctx context.Context) (int, error) {
	var resp pb.RunCatalogScanResponse
	err := a.slowMaster(ctx, "catalog janitor run", "RunCatalogScan", &pb.RunCatalogScanRequest{}, &resp, session.Safe)
	return int(resp.GetScanResult()), fault.Wrap("catalog janitor run", "", err)
}

// SetCatalogJanitor switches the catalog janitor and says what it was before.
func (a *Admin) SetCatalogJanitor(ctx context.Context, on bool) (was bool, err error) {
	var resp pb.EnableCatalogJanitorResponse
	err = a.master(ctx, "catalog janitor switch", "EnableCatalogJanitor", &pb.EnableCatalogJanitorRequest{Enable: &on}, &resp, session.Safe)
	return resp.GetPrevValue(), fault.Wrap("catalog janitor switch", "", err)
}

// CatalogJanitorEnabled says whether the catalog janitor is switched on.
func (a *Admin) CatalogJanitorEnabled(ctx context.Context) (bool, error) {
	var resp pb.IsCatalogJanitorEnabledResponse
	err := a.master(ctx, "catalog janitor enabled", "IsCatalogJanitorEnabled", &pb.IsCatalogJanitorEnabledRequest{}, &resp, session.Safe)
	return resp.GetValue(), fault.Wrap("catalog janitor enabled", "", err)
}

// RunCleanerChore deletes old logs and archived files nobody needs any more,
// and says whether it ran.
func (a *Admin) RunCleanerChore(ctx context.Context) (bool, error) {
	var resp pb.RunCleanerChoreResponse
	err := a.slowMaster(ctx, "cleaner chore run", "RunCleanerChore", &pb.RunCleanerChoreRequest{}, &resp, session.Safe)
	return resp.GetCleanerChoreRan(), fault.Wrap("cleaner chore run", "", err)
}

// SetCleanerChore switches the cleaner chore and says what it was before.
func (a *Admin) SetCleanerChore(ctx context.Context, on bool) (was bool, err error) {
	var resp pb.SetCleanerChoreRunningResponse
	err = a.master(ctx, "cleaner chore switch", "SetCleanerChoreRunning", &pb.SetCleanerChoreRunningRequest{On: &on}, &resp, session.Safe)
	return resp.GetPrevValue(), fault.Wrap("cleaner chore switch", "", err)
}

// CleanerChoreEnabled says whether the cleaner chore is switched on.
func (a *Admin) CleanerChoreEnabled(ctx context.Context) (bool, error) {
	var resp pb.IsCleanerChoreEnabledResponse
	err := a.master(ctx, "cleaner chore enabled", "IsCleanerChoreEnabled", &pb.IsCleanerChoreEnabledRequest{}, &resp, session.Safe)
	return resp.GetValue(), fault.Wrap("cleaner chore enabled", "", err)
}

// SplitsEnabled says whether splits are switched on.
func (a *Admin) SplitsEnabled(ctx context.Context) (bool, error) {
	return a.isSwitched(ctx, "split switch", pb.MasterSwitchType_SPLIT)
}

// MergesEnabled says whether merges are switched on.
func (a *Admin) MergesEnabled(ctx context.Context) (bool, error) {
	return a.isSwitched(ctx, "merge switch", pb.MasterSwitchType_MERGE)
}

func (a *Admin) isSwitched(ctx context.Context, op string, which pb.MasterSwitchType) (bool, error) {
	var resp pb.IsSplitOrMergeEnabledResponse
	err := a.master(ctx, op, "IsSplitOrMergeEnabled", &pb.IsSplitOrMergeEnabledRequest{SwitchType: &which}, &resp, session.Safe)
	return resp.GetEnabled(), fault.Wrap(op, "", err)
}
