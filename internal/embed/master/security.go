package master

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// addSecurity answers the calls of access control as an HBase whose master has
// not loaded the AccessController.
func (m *Master) addSecurity(s *rpcserver.Service) {
	off := func() error {
		return refuse(wire.ClassDoNotRetryIO, "java.lang.UnsupportedOperationException: org.apache.hadoop.hbase.security.access.AccessController is not loaded")
	}
	answer(m, s, "Grant", func(context.Context, *pb.GrantRequest) (*pb.GrantResponse, error) { return nil, off() })
	answer(m, s, "Revoke", func(context.Context, *pb.RevokeRequest) (*pb.RevokeResponse, error) { return nil, off() })
	answer(m, s, "GetUserPermissions", func(context.Context, *pb.GetUserPermissionsRequest) (*pb.GetUserPermissionsResponse, error) {
		return nil, off()
	})
	answer(m, s, "HasUserPermissions", func(context.Context, *pb.HasUserPermissionsRequest) (*pb.HasUserPermissionsResponse, error) {
		return nil, off()
	})
}
