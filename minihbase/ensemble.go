package minihbase

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
)

// ZooKeeperFault is what is wrong with a member of the ensemble: a mode, and
// what is wrong besides. The zero value is a healthy member.
type (
	ZooKeeperFault = zkserver.Fault
	ZooKeeperMode  = zkserver.Mode
)

// The modes of a member.
const (
	ZooKeeperHealthy = zkserver.Healthy
	// ZooKeeperFrozen: a stopped process; it goes on where it stood when mended.
	ZooKeeperFrozen = zkserver.Frozen
	// ZooKeeperRefuse: nothing listens. Established connections go on.
	ZooKeeperRefuse = zkserver.Refuse
	// ZooKeeperBlackHole: bytes vanish in both directions, as behind a cut cable.
	ZooKeeperBlackHole = zkserver.BlackHole
	// ZooKeeperHangup: new connections are closed at once.
	ZooKeeperHangup = zkserver.Hangup
	// ZooKeeperSilent: new connections are accepted and never answered.
	ZooKeeperSilent = zkserver.Silent
	// ZooKeeperLeaderless: a follower that has lost its leader and has not
	// noticed: reads and pings are answered, handshakes and writes are not.
	ZooKeeperLeaderless = zkserver.Leaderless
	// ZooKeeperElecting: a member without a quorum, which closes connections at
	// the handshake.
	ZooKeeperElecting = zkserver.Electing
	// ZooKeeperReadOnly: serves reads to clients that said this is enough.
	ZooKeeperReadOnly = zkserver.ReadOnly
)

// AllZooKeepers names every member of the ensemble where an index is asked for.
const AllZooKeepers = -1

// ZooKeeperMember describes a member of the ensemble.
type ZooKeeperMember struct {
	Index   int
	Address string
	Leader  bool
	Fault   ZooKeeperFault
}

// ZooKeeperMembers describes the ensemble by index.
func (m *Cluster) ZooKeeperMembers() []ZooKeeperMember {
	zk, leader := m.c.ZooKeeper(), m.c.ZooKeeper().Leader()
	var out []ZooKeeperMember
	for i, a := range m.ZooKeepers() {
		out = append(out, ZooKeeperMember{Index: i, Address: a, Leader: i == leader, Fault: zk.Member(i).Fault()})
	}
	return out
}

// ErrNoZooKeeper is given for an index that no member of the ensemble has.
var ErrNoZooKeeper = errors.New("there is no such member of the ensemble")

// zooKeepers gives the members an index names.
func (m *Cluster) zooKeepers(i int) ([]*zkserver.Member, error) {
	zk := m.c.ZooKeeper()
	if i < AllZooKeepers || i >= zk.Members() {
		return nil, fmt.Errorf("minihbase: %w: %d of %d", ErrNoZooKeeper, i, zk.Members())
	}
	var out []*zkserver.Member
	for k := range zk.Members() {
		if i == k || i == AllZooKeepers {
			out = append(out, zk.Member(k))
		}
	}
	return out, nil
}

// BreakZooKeeper breaks a member of the ensemble, counted from 0, or every one
// (AllZooKeepers), for established connections, too, where the mode says so; the
// zero fault mends. Region servers and masters keep their znodes: they do not go
// through a member. The error is ErrNoZooKeeper, or that of listening again after
// ZooKeeperRefuse.
func (m *Cluster) BreakZooKeeper(member int, f ZooKeeperFault) error {
	list, err := m.zooKeepers(member)
	if err != nil {
		return err
	}
	for _, z := range list {
		if err := z.SetFault(f); err != nil {
			return err
		}
	}
	return nil
}

// MendZooKeeper makes every member healthy and ends what StallZooKeeperLeader
// began; so does Reset.
func (m *Cluster) MendZooKeeper() error { return m.c.ZooKeeper().Resume() }

// StallZooKeeperLeader plays a leader that stops without dying, and returns at
// once. The leading member freezes. The others are followers that have not
// noticed (ZooKeeperLeaderless; what was wrong with them before is forgotten);
// notice later they have, and drop their clients; elect after that the next one
// leads, they serve, and every session has its full timeout before it. The old
// leader stays frozen until it is mended. It takes an ensemble of two or more.
func (m *Cluster) StallZooKeeperLeader(notice, elect time.Duration) error {
	zk := m.c.ZooKeeper()
	if zk.Members() < 2 {
		return errors.New("minihbase: a lone ZooKeeper has nobody to elect; Options.ZooKeepers makes an ensemble")
	}
	if notice < 0 || elect < 0 {
		return fmt.Errorf("minihbase: notice %v or elect %v is negative", notice, elect)
	}
	zk.StallLeader(notice, elect)
	return nil
}

// DropZooKeeperConnections closes the connections of a member of the ensemble,
// or of every one (AllZooKeepers), without a word; sessions stay.
func (m *Cluster) DropZooKeeperConnections(member int) error {
	list, err := m.zooKeepers(member)
	for _, z := range list {
		z.DropConnections()
	}
	return err
}
