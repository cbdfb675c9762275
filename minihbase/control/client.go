package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Client talks to one control port.
type Client struct {
	base string
	http *http.Client
}

// New makes a client of a control port: "http://127.0.0.1:16900" or
// "127.0.0.1:16900".
func New(address string) (*Client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("control address %q is not http://host:port", address)
	}
	return &Client{base: "http://" + u.Host, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// maxAnswer bounds an answer: the regions of a very large cluster.
const maxAnswer = 256 << 20

// do sends a request and decodes the answer into out, if that is not nil.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("control %s %s: %w", method, path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("control %s %s: answer: %w", method, path, err)
	}
	return nil
}

// send sends a request; an answer that says no is an *Error.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("control %s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	e := &Error{}
	if json.Unmarshal(text, e) != nil || e.Message == "" {
		e.Message = fmt.Sprintf("control %s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	e.Code = resp.StatusCode
	return nil, e
}

func (c *Client) post(ctx context.Context, path string, in, out any) error {
	return c.do(ctx, http.MethodPost, path, in, out)
}

// Status describes the cluster.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.do(ctx, http.MethodGet, "/status", nil, &s)
}

// Regions lists a table's regions in key order; of every table if it is "".
func (c *Client) Regions(ctx context.Context, table string) (r []Region, err error) {
	return r, c.do(ctx, http.MethodGet, "/regions?table="+url.QueryEscape(table), nil, &r)
}

// CreateTable makes a table and waits until it is open.
func (c *Client) CreateTable(ctx context.Context, q CreateRequest) error {
	return c.post(ctx, "/create", q, nil)
}

// GenerateTable makes a table whose regions and rows follow a formula.
func (c *Client) GenerateTable(ctx context.Context, q GenerateRequest) error {
	return c.do(ctx, http.MethodPost, "/generate", q, nil)
}

// ReplicaLag lets secondary replicas show what was there some time ago.
func (c *Client) ReplicaLag(ctx context.Context, d Duration) error {
	return c.do(ctx, http.MethodPost, "/replica-lag", ReplicaLagRequest{Lag: d}, nil)
}

// DropTable disables and deletes a table; one that is not there is no error.
func (c *Client) DropTable(ctx context.Context, table string) error {
	return c.post(ctx, "/drop", map[string]string{"table": table}, nil)
}

// Move moves a region and waits until it is open; the answer says where.
func (c *Client) Move(ctx context.Context, q MoveRequest) (r Region, err error) {
	return r, c.post(ctx, "/move", q, &r)
}

// Split splits a region and waits until the daughters are open.
func (c *Client) Split(ctx context.Context, q SplitRequest) error {
	return c.post(ctx, "/split", q, nil)
}

// Merge merges regions and waits until the result is open.
func (c *Client) Merge(ctx context.Context, q MergeRequest) error {
	return c.post(ctx, "/merge", q, nil)
}

// Balance evens out the regions.
func (c *Client) Balance(ctx context.Context) (r BalanceResult, err error) {
	return r, c.post(ctx, "/balance", nil, &r)
}

// Group changes region server groups.
func (c *Client) Group(ctx context.Context, q GroupRequest) error {
	return c.post(ctx, "/group", q, nil)
}

// Kill ends a server as kill -9 does; Stop in order; Start starts it again.
// Servers are named as in ServerRequest.
func (c *Client) Kill(ctx context.Context, server string) error { return c.server(ctx, "kill", server) }

// KillAndLose kills a region server, and with it the writes that HBase would
// lose: with durability ASYNC_WAL those not synced yet, with SKIP_WAL those since
// the last flush.
func (c *Client) KillAndLose(ctx context.Context, server string) error {
	return c.post(ctx, "/kill", ServerRequest{Server: server, LoseUnsynced: true}, nil)
}

// Stop ends a server in order.
func (c *Client) Stop(ctx context.Context, server string) error { return c.server(ctx, "stop", server) }

// Start starts a server that was stopped or killed.
func (c *Client) Start(ctx context.Context, server string) error {
	return c.server(ctx, "start", server)
}

// AddServer adds a region server.
func (c *Client) AddServer(ctx context.Context) (s Server, err error) {
	return s, c.post(ctx, "/add", nil, &s)
}

// Pause makes a region server neither read nor write, as SIGSTOP does.
func (c *Client) Pause(ctx context.Context, server string) error {
	return c.server(ctx, "pause", server)
}

// Hang makes a region server read and never answer.
func (c *Client) Hang(ctx context.Context, server string) error { return c.server(ctx, "hang", server) }

// Resume undoes Pause and Hang.
func (c *Client) Resume(ctx context.Context, server string) error {
	return c.server(ctx, "resume", server)
}

// Slow delays every answer of a region server; 0 ends that.
func (c *Client) Slow(ctx context.Context, server string, d Duration) error {
	return c.post(ctx, "/slow", ServerRequest{Server: server, Delay: d}, nil)
}

// Expire ends a region server's ZooKeeper session, and with it the server.
func (c *Client) Expire(ctx context.Context, server string) error {
	return c.server(ctx, "expire", server)
}

// ResetConnections resets every connection of a region server.
func (c *Client) ResetConnections(ctx context.Context, server string) error {
	return c.server(ctx, "reset-connections", server)
}

func (c *Client) server(ctx context.Context, verb, server string) error {
	return c.post(ctx, "/"+verb, ServerRequest{Server: server}, nil)
}

// AddRule adds a chaos rule and gives its id.
func (c *Client) AddRule(ctx context.Context, r Rule) (id uint64, err error) {
	var s RuleStatus
	err = c.post(ctx, "/rule", r, &s)
	return s.ID, err
}

// Rules lists the chaos rules.
func (c *Client) Rules(ctx context.Context) (r []RuleStatus, err error) {
	return r, c.do(ctx, http.MethodGet, "/rule", nil, &r)
}

// RemoveRule removes a rule; ClearRules all.
func (c *Client) RemoveRule(ctx context.Context, id uint64) error {
	return c.do(ctx, http.MethodDelete, "/rule/"+strconv.FormatUint(id, 10), nil, nil)
}

// ClearRules removes every rule.
func (c *Client) ClearRules(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/rule", nil, nil)
}

// ReleaseRule lets the calls go on that a hold rule holds.
func (c *Client) ReleaseRule(ctx context.Context, id uint64) error {
	return c.post(ctx, "/rule/"+strconv.FormatUint(id, 10)+"/release", nil, nil)
}

// WaitRule waits until a rule was applied n times since it was added, or ctx
// ends.
func (c *Client) WaitRule(ctx context.Context, id, n uint64) (r RuleStatus, err error) {
	return r, c.post(ctx, fmt.Sprintf("/rule/%d/wait?hits=%d", id, n), nil, &r)
}

// Clock changes the clock and gives its state; an empty request only reads.
func (c *Client) Clock(ctx context.Context, q ClockRequest) (r Clock, err error) {
	return r, c.post(ctx, "/clock", q, &r)
}

// Master disturbs the master.
func (c *Client) Master(ctx context.Context, q MasterRequest) error {
	return c.post(ctx, "/master", q, nil)
}

// ReckonSpace counts now what tables use of their space quotas, and enforces
// what it finds.
func (c *Client) ReckonSpace(ctx context.Context) error {
	return c.post(ctx, "/reckon-space", nil, nil)
}

// Reset gives the cluster the shape it had at first.
func (c *Client) Reset(ctx context.Context) error { return c.post(ctx, "/reset", nil, nil) }

// ZooKeeperFault breaks or mends the ZooKeeper ensemble, or the member it names;
// the zero value mends.
func (c *Client) ZooKeeperFault(ctx context.Context, f ZooKeeperFault) error {
	return c.post(ctx, "/zk/fault", f, nil)
}

// ZooKeeperMembers lists the members of the ensemble and what is wrong with them.
func (c *Client) ZooKeeperMembers(ctx context.Context) (m []ZooKeeperMember, err error) {
	return m, c.do(ctx, http.MethodGet, "/zk/members", nil, &m)
}

// MendZooKeeper makes every member healthy and ends what StallZooKeeperLeader
// began.
func (c *Client) MendZooKeeper(ctx context.Context) error {
	return c.post(ctx, "/zk/mend", nil, nil)
}

// StallZooKeeperLeader has the ensemble's leader freeze, and the others notice
// and elect another one. It returns at once.
func (c *Client) StallZooKeeperLeader(ctx context.Context, q StallRequest) error {
	return c.post(ctx, "/zk/stall-leader", q, nil)
}

// DropZooKeeperConnections closes every ZooKeeper connection; sessions stay.
func (c *Client) DropZooKeeperConnections(ctx context.Context) error {
	return c.post(ctx, "/zk/drop", nil, nil)
}

// Sessions lists the ZooKeeper sessions.
func (c *Client) Sessions(ctx context.Context) (s []Session, err error) {
	return s, c.do(ctx, http.MethodGet, "/zk/sessions", nil, &s)
}

// ExpireSession ends a ZooKeeper session as if its time had run out.
func (c *Client) ExpireSession(ctx context.Context, id string) error {
	return c.post(ctx, "/zk/expire", map[string]string{"id": id}, nil)
}

// ZNode reads a znode, SetZNode writes one (persistent, made if missing), and
// RemoveZNode removes one with everything below it.
func (c *Client) ZNode(ctx context.Context, path string) (n ZNode, err error) {
	return n, c.do(ctx, http.MethodGet, "/zk/node?path="+url.QueryEscape(path), nil, &n)
}

// SetZNode writes a znode.
func (c *Client) SetZNode(ctx context.Context, n ZNode) error {
	return c.do(ctx, http.MethodPut, "/zk/node", n, nil)
}

// RemoveZNode removes a znode and what is below it.
func (c *Client) RemoveZNode(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, "/zk/node?path="+url.QueryEscape(path), nil, nil)
}

// RestoreZNodes makes HBase's own znodes what they should be again.
func (c *Client) RestoreZNodes(ctx context.Context) error {
	return c.post(ctx, "/zk/restore", nil, nil)
}

func (f *EventFilter) query() url.Values {
	q := url.Values{}
	for k, v := range map[string]string{"kind": f.Kind, "server": f.Server, "service": f.Service, "method": f.Method, "table": f.Table, "region": f.Region, "user": f.User, "outcome": f.Outcome} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.Failed {
		q.Set("failed", "true")
	}
	if f.Rule != 0 {
		q.Set("rule", strconv.FormatUint(f.Rule, 10))
	}
	return q
}

// Events gives the events after sequence number since, oldest first, at most
// limit of them (0: all that are remembered).
func (c *Client) Events(ctx context.Context, f EventFilter, since uint64, limit int) (e Events, err error) {
	q := f.query()
	q.Set("since", strconv.FormatUint(since, 10))
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return e, c.do(ctx, http.MethodGet, "/events?"+q.Encode(), nil, &e)
}

// Follow gives the events after sequence number since as they happen, until
// ctx ends (no error) or the connection does.
func (c *Client) Follow(ctx context.Context, f EventFilter, since uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		q := f.query()
		q.Set("since", strconv.FormatUint(since, 10))
		q.Set("follow", "true")
		resp, err := c.send(ctx, http.MethodGet, "/events?"+q.Encode(), nil)
		if err != nil {
			if ctx.Err() == nil {
				yield(Event{}, err)
			}
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue // keeps the connection alive
			}
			var e Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				yield(Event{}, fmt.Errorf("control: event: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			yield(Event{}, err)
		}
	}
}

// Counters gives the numbers of calls since the cluster began.
func (c *Client) Counters(ctx context.Context) (r []Counter, err error) {
	return r, c.do(ctx, http.MethodGet, "/counters", nil, &r)
}
