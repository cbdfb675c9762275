package admin

import "testing"

func TestClusterStatus(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		st, err := c.adm.ClusterStatus(c.context(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Live) != 1 || len(st.Dead) != 0 || st.Version == "" {
			t.Errorf("status %+v", st)
		}
		if c.name != "embedded" && st.Version != c.name {
			t.Errorf("version %s", st.Version)
		}
	})
}
