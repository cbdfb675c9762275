package master

import "github.com/holdfast-hbase/holdfast/internal/embed/catalog"

// Switches are settings of the catalog; what is on by default is stored as
// "off" and the other way round, so that the unset value is the default.
const (
	settingBalancerOff        = "switch.balancer.off"
	settingNormalizerOff      = "switch.normalizer.off"
	settingJanitorOff         = "switch.janitor.off"
	settingCleanerOff         = "switch.cleaner.off"
	settingSplitOff           = "switch.split.off"
	settingMergeOff           = "switch.merge.off"
	settingSnapshotCleanupOff = "switch.snapshot-cleanup.off"
	settingThrottleOff        = catalog.SettingThrottleOff
	settingPeerOff            = "switch.peer-modification.off"
)

// isOn reads a switch that is on unless its setting says otherwise.
func (m *Master) isOn(offSetting string) bool { return m.state().Setting(offSetting) == "" }

// setOn changes such a switch and gives its previous value.
func (m *Master) setOn(offSetting string, on bool) (before bool, err error) {
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		before = tx.Setting(offSetting) == ""
		value := "1"
		if on {
			value = ""
		}
		tx.SetSetting(offSetting, value)
		return nil
	})
	return before, err
}
